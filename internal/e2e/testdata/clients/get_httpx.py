# Gets a URL with httpx, as a script would.
import sys

import httpx

try:
    response = httpx.get(sys.argv[1])
except httpx.TimeoutException as timeout:
    sys.exit(f"timed out: {type(timeout).__name__}")
print("status", response.status_code)
for name, value in response.headers.items():
    print(f"{name}: {value}")
print(response.text)
