"""The frozen program's first script; everything is in fermix.__main__, which source and binary share."""

import sys

from fermix.__main__ import main

sys.exit(main())
