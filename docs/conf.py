"""The site of `make docs`: Sphinx reads the Markdown of this folder."""

project = "heirlog"
author = "the heirlog maintainers"
project_copyright = "the heirlog maintainers"

extensions = ["myst_parser"]
html_theme = "furo"
html_title = "heirlog"
# headings get the anchors that they have on GitHub, so that one link works in both places
myst_heading_anchors = 4
# Sphinx has no lexer for some names of code blocks that are plain text
suppress_warnings = ["misc.highlighting_failure"]
