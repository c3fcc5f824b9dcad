"""`python tools/codegen`: write what the specs say; how many files changed goes to standard output."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from codegen.generator import main

raise SystemExit(main())
