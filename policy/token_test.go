package policy

import (
	"strings"
	"testing"
)

func TestProductToken(t *testing.T) {
	for _, test := range []struct{ userAgent, want string }{
		// Crawlers that name themselves first.
		{"Googlebot/2.1 (+http://www.google.com/bot.html)", "Googlebot"},
		{"Googlebot-Image/1.0", "Googlebot-Image"},
		{"Mediapartners-Google", "Mediapartners-Google"},
		{"AdsBot-Google (+http://www.google.com/adsbot.html)", "AdsBot-Google"},
		{"FeedFetcher-Google; (+http://www.google.com/feedfetcher.html)", "FeedFetcher-Google"},
		{"CCBot/2.0 (https://commoncrawl.org/faq/)", "CCBot"},
		{"DuckDuckBot/1.1; (+http://duckduckgo.com/duckduckbot.html)", "DuckDuckBot"},
		{"facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)", "facebookexternalhit"},
		{"meta-externalagent/1.1 (+https://developers.facebook.com/docs/sharing/webmasters/crawler)", "meta-externalagent"},
		{"LinkedInBot/1.0 (compatible; Mozilla/5.0; Apache-HttpClient +http://www.linkedin.com)", "LinkedInBot"},
		{"Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)", "Slackbot-LinkExpanding"},
		{"ia_archiver (+http://www.alexa.com/site/help/webmasters; crawler@alexa.com)", "ia_archiver"},
		{"360Spider", "360Spider"},
		{"msnbot-media/1.1 (+http://search.msn.com/msnbot.htm)", "msnbot-media"},
		{"  ExampleBot  ", "ExampleBot"},

		// Libraries and tools.
		{"Scrapy/2.11.2 (+https://scrapy.org)", "Scrapy"},
		{"curl/8.5.0", "curl"},
		{"Wget/1.21.4 (linux-gnu)", "Wget"},
		{"python-requests/2.32.3", "python-requests"},
		{"Python-urllib/3.12", "Python-urllib"},
		{"Python/3.12 aiohttp/3.9.5", "Python"},
		{"Go-http-client/1.1", "Go-http-client"},
		{"Java/17.0.2", "Java"},
		{"Apache-HttpClient/4.5.14 (Java/17.0.2)", "Apache-HttpClient"},
		{"okhttp/4.12.0", "okhttp"},
		{"node", "node"},
		{"axios/1.7.2", "axios"},

		// Crawlers that pose as a browser and name themselves after "compatible;".
		{"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "Googlebot"},
		{"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; Googlebot/2.1; +http://www.google.com/bot.html) Chrome/125.0.6422.175 Safari/537.36", "Googlebot"},
		{"Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X Build/MMB29P) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/125.0.6422.175 Mobile Safari/537.36 " +
			"(compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "Googlebot"},
		{"Mozilla/5.0 (iPhone; CPU iPhone OS 8_3 like Mac OS X) AppleWebKit/600.1.4 (KHTML, like Gecko) Version/8.0 Mobile/12F70 Safari/600.1.4 " +
			"(compatible; Googlebot-Mobile/2.1; +http://www.google.com/bot.html)", "Googlebot-Mobile"},
		{"SAMSUNG-SGH-E250/1.0 Profile/MIDP-2.0 Configuration/CLDC-1.1 UP.Browser/6.2.3.3.c.1.101 (GUI) MMP/2.0 (compatible; Googlebot-Mobile/2.1; +http://www.google.com/bot.html)", "SAMSUNG-SGH-E250"},
		{"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm) Chrome/116.0.1938.76 Safari/537.36", "bingbot"},
		{"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)", "GPTBot"},
		{"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; ChatGPT-User/1.0; +https://openai.com/bot", "ChatGPT-User"},
		{"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; ClaudeBot/1.0; +claudebot@anthropic.com)", "ClaudeBot"},
		{"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; PerplexityBot/1.0; +https://perplexity.ai/perplexitybot)", "PerplexityBot"},
		{"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; Amazonbot/0.1; +https://developer.amazon.com/support/amazonbot) Chrome/119.0.6045.214 Safari/537.36", "Amazonbot"},
		{"Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)", "YandexBot"},
		{"Mozilla/5.0 (compatible; Baiduspider/2.0; +http://www.baidu.com/search/spider.html)", "Baiduspider"},
		{"Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)", "AhrefsBot"},
		{"Mozilla/5.0 (compatible; SemrushBot/7~bl; +http://www.semrush.com/bot.html)", "SemrushBot"},
		{"Mozilla/5.0 (compatible; MJ12bot/v1.4.8; http://mj12bot.com/)", "MJ12bot"},
		{"Mozilla/5.0 (compatible; DotBot/1.2; +https://opensiteexplorer.org/dotbot; help@moz.com)", "DotBot"},
		{"Mozilla/5.0 (Linux; Android 5.0) AppleWebKit/537.36 (KHTML, like Gecko) Mobile Safari/537.36 (compatible; Bytespider; spider-feedback@bytedance.com)", "Bytespider"},
		{"Mozilla/5.0 (Linux; Android 7.0;) AppleWebKit/537.36 (KHTML, like Gecko) Mobile Safari/537.36 (compatible; PetalBot;+https://webmaster.petalsearch.com/site/petalbot)", "PetalBot"},
		{"Mozilla/5.0 (compatible; archive.org_bot +http://archive.org/details/archive.org_bot)", "archive"},
		{"Mozilla/5.0 (compatible; Yahoo! Slurp; http://help.yahoo.com/help/us/ysearch/slurp)", "Yahoo"},
		{"Mozilla/5.0 (COMPATIBLE;ExampleBot)", "ExampleBot"},

		// ... or in a comment with a version.
		{"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_5) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/13.1.1 Safari/605.1.15 (Applebot/0.1; +http://www.apple.com/go/applebot)", "Applebot"},
		{"Mozilla/5.0 (X11; Linux x86_64; Storebot-Google/1.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/79.0.3945.88 Safari/537.36", "Storebot-Google"},
		{"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/90.0.4430.93 Safari/537.36 (+ExampleBot, OtherBot/3)", "OtherBot"},
		{"(ExampleBot/1.0)", "ExampleBot"},

		// ... or after all products of a browser.
		{"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36 ExampleBot/2.0 (+https://example.com)", "ExampleBot"},
		{"Mozilla/5.0 (Windows NT 10.0) Gecko/20100101 Firefox/115.0 Google-Read-Aloud", "Google-Read-Aloud"},

		// Browsers.
		{"Mozilla/5.0", ""},
		{"Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0", ""},
		{"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36", ""},
		{"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36 Edg/126.0.0.0", ""},
		{"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/125.0.0.0 Safari/537.36 OPR/111.0.0.0", ""},
		{"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/126.0.0.0 Safari/537.36", ""},
		{"Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/126.0.6478.54 Mobile/15E148 Safari/604.1", ""},
		{"Mozilla/5.0 (Linux; Android 10; K Build/5) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/126.0.0.0 Mobile Safari/537.36", ""},
		{"Mozilla/5.0 (Windows NT 6.1; WOW64; Trident/7.0; rv:11.0) like Gecko", ""},
		{"Mozilla/4.0 (compatible; MSIE 8.0; Windows NT 6.1; Trident/4.0; .NET CLR 2.0.50727)", ""},
		{"Opera/9.80 (Windows NT 6.0) Presto/2.12.388 Version/12.14", ""},

		// No name, or little to find one in.
		{"", ""},
		{"-", ""},
		{"5.0", ""},
		{"(+https://example.com/bot.html)", ""},
		{"(ExampleBot)", ""},
		{"(compatible; https://example.com/1)", ""},
		{"(compatible; ops@example.com)", ""},
		{"https://example.com/bot", ""},
		{"ExämpleBot/1.0", "Ex"},

		// Comments nest, quote, and may not end.
		{"Mozilla/5.0 (X11 (Evil/1 \\) ExampleBot) still) RealBot/1", "RealBot"},
		{"Mozilla/5.0 (a (b (compatible; ExampleBot/1.0) c) d", "ExampleBot"},
		{"Mozilla/5.0 (compatible; ExampleBot/1.0", "ExampleBot"},
		{"Mozilla/5.0 ) ExampleBot/1.0", "ExampleBot"},
		{"Mozilla/5.0 (", ""},
		{"Mozilla/5.0 (\\", ""},

		{strings.Repeat(" ", 2000) + "ExampleBot", ""},
	} {
		if got := ProductToken(test.userAgent); got != test.want {
			t.Errorf("%.200q: got %q, want %q", test.userAgent, got, test.want)
		}
	}
}
