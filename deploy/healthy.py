"""Exit 0 if the address answers with a success: `python healthy.py https://127.0.0.1:9441/healthz`.

For health checks on the machine of the service itself, so its certificate is not compared.
"""

from __future__ import annotations

import ssl
import sys
import urllib.request


def main(url: str) -> int:
    """0 or 1, and one sentence if 1."""
    unchecked = ssl.create_default_context()
    unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
    handlers = (urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=unchecked))
    try:
        with urllib.request.build_opener(*handlers).open(url, timeout=5):
            return 0
    except OSError as error:  # HTTP errors too
        sys.stderr.write(f"{url}: {error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
