"""Stands in for Playwright for Python: prints the options of launch."""
import contextlib
import json
from unittest import mock


@contextlib.contextmanager
def sync_playwright():
    playwright = mock.MagicMock()
    playwright.chromium.launch.side_effect = lambda **options: print(json.dumps(options)) or mock.MagicMock()
    yield playwright
