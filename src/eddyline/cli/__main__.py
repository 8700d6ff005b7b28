"""`python -m eddyline.cli`."""

import sys

from eddyline.cli.main import main

sys.exit(main())
