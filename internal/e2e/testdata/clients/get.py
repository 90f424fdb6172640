# Gets a URL with requests, as a script would.
import sys

import requests

response = requests.get(sys.argv[1], timeout=30)
print("status", response.status_code)
for name, value in response.headers.items():
    print(f"{name}: {value}")
print(response.text)
