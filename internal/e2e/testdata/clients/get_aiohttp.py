# Gets a URL with aiohttp, which reads the proxy variables only if it is told to.
import asyncio
import sys

import aiohttp


async def main(url):
    async with aiohttp.ClientSession(trust_env=True) as session, session.get(url) as response:
        print("status", response.status)
        for name, value in response.headers.items():
            print(f"{name}: {value}")
        print(await response.text())


asyncio.run(main(sys.argv[1]))
