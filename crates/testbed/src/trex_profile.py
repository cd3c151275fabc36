"""Runs a stateless profile of TRex in TRex's own library, and prints the streams that it makes.

Arguments: the profile, then a port (0 or 1) for each list of streams that is wanted.
Standard output: a JSON list of lists of streams. What the profile prints goes to standard error.
"""

import json
import os
import sys
import warnings

warnings.simplefilter("ignore")
answer = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

try:
    from trex.stl.api import STLProfile
except ImportError:
    import lbr_trex_client

    # Profiles import the library by the name that it has in a checkout of TRex.
    sys.path.insert(0, os.path.join(os.path.dirname(lbr_trex_client.__file__), "interactive"))
    from trex.stl.api import STLProfile

try:
    streams = []
    for port in sys.argv[2:]:
        profile = STLProfile.load_py(sys.argv[1], direction=int(port) % 2, port_id=int(port))
        streams.append(profile.to_json() if profile else [])
except Exception as error:
    sys.exit(str(error))
json.dump(streams, answer)
answer.close()
