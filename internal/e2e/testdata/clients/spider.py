# A spider of a few lines, run with Scrapy's own robots.txt handling switched off.
import scrapy


class Spider(scrapy.Spider):
    name = "gate"
    handle_httpstatus_list = [403]  # else Scrapy drops what it was refused

    def start_requests(self):
        yield scrapy.Request(self.url)

    def parse(self, response):
        print("status", response.status)
        for name, values in response.headers.items():
            for value in values:
                print(f"{name.decode()}: {value.decode()}")
        print(response.text)
