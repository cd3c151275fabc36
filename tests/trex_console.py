"""Runs a batch of commands in TRex's console, as `trex-console --batch` does.

Arguments: the port for calls, the port for events, a file of commands.
Standard output: what the console prints.
"""

import os
import sys
import warnings

warnings.simplefilter("ignore")

import lbr_trex_client  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(lbr_trex_client.__file__), "interactive"))
from trex.console import trex_console  # noqa: E402

calls, events, batch = sys.argv[1:]
sys.argv = ["trex-console", "-s", "127.0.0.1", "-p", calls, "--async_port", events, "--batch", batch]
trex_console.main()
