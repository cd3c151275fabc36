//! The reader of standard output may stop reading, as `head` does: then there is nobody to tell, and the
//! program ends without a word, as failed: not all that it had to say was read.

use std::panic::{self, PanicHookInfo};
use std::process;

/// Ends the program quietly where `println!` would panic because nobody reads.
pub fn ends_quietly() {
    let other = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if is_broken_pipe(info) {
            // Nothing needs an orderly end: labs and the programs started here end with the process.
            process::exit(1);
        }
        other(info);
    }));
}

/// By its text, since that is all that `println!` gives.
fn is_broken_pipe(info: &PanicHookInfo) -> bool {
    let said = info.payload().downcast_ref::<String>();
    said.is_some_and(|said| said.starts_with("failed printing to std") && said.contains("Broken pipe"))
}
