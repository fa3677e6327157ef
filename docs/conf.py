"""How the documents become a site: `make docs` builds them with Sphinx, every warning an error.

Pages are Markdown, read by MyST. Nothing is fetched: links to other projects are plain links.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE)]  # the checkout documents itself, whatever is installed

import dynagrad as dg  # noqa: E402  # from the checkout

project = "Dynagrad"
author = "the authors of Dynagrad"
copyright = author
release = version = dg.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "extensions.dyna_lexer",
    "extensions.docstrings",
    "extensions.generated",
]
exclude_patterns = ["extensions", "recipes/made"]
nitpicky = True  # a reference that leads nowhere is a warning, be it to a page, a heading or a term
nitpick_ignore_regex = [("py:.*", ".*")]  # but not one to a name of Python: types in signatures are of numpy, and ours

myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4

default_role = "code"
highlight_language = "none"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 90  # a longer one has a line for each argument
add_module_names = False
toc_object_entries = False
smartquotes = False  # options such as `--query` stay as they are typed

html_theme = "furo"
html_title = f"Dynagrad {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
pygments_style = "friendly"
pygments_dark_style = "github-dark"

# Buttons copy what is typed, and not what comes out.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
