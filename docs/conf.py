"""Sphinx's configuration: `sphinx-build -W -n docs build/site`, or `.ci/docs` in a fresh environment."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "extensions"))
os.environ["PULLBACK_MACHINE"] = "reference"  # the code that pages show is the same on every machine

from pullback import __version__

project = "pullback"
author = "pullback contributors"
copyright = "pullback contributors"
version = release = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "names",
]
exclude_patterns = ["problems", "measured.md", "gallery/*.ipynb", "gallery/*.py"]

# Pages: Markdown whose code cells are run, an error in one of which is an error of the build.
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True

# The reference, of docstrings.
default_role = "code"
highlight_language = "none"  # of blocks that name none
autodoc_typehints = "none"
napoleon_use_rtype = False
add_module_names = False
nitpick_ignore_regex = [("py:class", r"collections\.abc\..*")]  # of Python's documentation

sphinx_gallery_conf = {
    "examples_dirs": "problems",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/\w+\.py$",
    "download_all_examples": False,
    "show_memory": False,
    "abort_on_example_error": True,
    "min_reported_time": 10_000,
    "plot_gallery": True,
    "remove_config_comments": True,
    "show_signature": False,
    "write_computation_times": False,
}

html_theme = "furo"
html_title = "pullback"
html_static_path = ["static"]
html_css_files = ["pages.css"]
html_theme_options = {"navigation_with_keys": True}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
