//! Records enter; terminal tables and the HTML page leave.
