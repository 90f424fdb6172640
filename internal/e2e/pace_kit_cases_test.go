package e2e

import (
	"slices"
	"strings"
	"time"
)

// kitGates are the settings of the gates that cases share. The crawlers are one, two and other, by User-Agent.
var kitGates = map[string]string{
	"":            "pace: {crawl_delay: obey}",
	"min":         "pace: {min_delay: 1s}\noverrides: [{hosts: ['*'], paths: [/allowed/], action: allow, reason: kit}]",
	"longer":      "pace: {crawl_delay: obey, min_delay: 2s}",
	"shorter":     "pace: {crawl_delay: obey, min_delay: 500ms}",
	"announce":    "pace: {crawl_delay: announce}",
	"short":       "pace: {crawl_delay: obey, max_wait: 1500ms}",
	"no wait":     "pace: {crawl_delay: obey, max_wait: 0s}",
	"max delay":   "pace: {crawl_delay: obey, max_delay: 2s}",
	"queue":       "pace: {crawl_delay: obey, max_queue: 2}",
	"back off":    "pace: {crawl_delay: obey, back_off: 10s}",
	"back off 2s": "pace: {crawl_delay: obey, back_off: 2s}",
	"back off 7s": "pace: {crawl_delay: obey, back_off: 7s}",
	"back off 1h": "pace: {crawl_delay: obey, back_off: 1h, max_wait: 1s}",
	"free":        "pace: {crawl_delay: obey, subresources: free}",
	"report":      "pace: {crawl_delay: obey, max_wait: 1500ms, back_off: 1h}\nmode: report",
	"passthrough": "pace: {crawl_delay: obey, max_wait: 1500ms}\nhttps: {passthrough: [127.0.0.1]}",
	"metrics":     "pace: {crawl_delay: obey, max_wait: 1500ms}",
	"reload":      "pace: {min_delay: 2s}",
	"drain":       "pace: {min_delay: 5s}",
	"drain later": "pace: {min_delay: 2s}\nlimits: {shutdown_delay: 6s}",
}

const (
	unpaced   = "User-agent: *\nDisallow: /private/\n"
	webSocket = "curl --http1.1 -H 'Connection: Upgrade' -H 'Upgrade: websocket' " +
		"-H 'Sec-WebSocket-Version: 13' -H 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==' "
	byGroup = "User-agent: *\nDisallow:\nCrawl-delay: 1\n\nUser-agent: One\nDisallow:\nCrawl-delay: 2\n\nUser-agent: Two\nDisallow:\n"
)

var kitCases = slices.Concat(
	intervalCases, headerCases, refusalCases, turnCases, backOffCases, destinationCases(), reportCases, tunnelCases, clientCases, requestCases, recordCases, endCases,
)

// delay returns a robots.txt with a Crawl-delay for all crawlers.
func delay(seconds string) string { return "User-agent: *\nCrawl-delay: " + seconds + "\n" }

var intervalCases = []kitCase{
	{name: "an integer", arrivals: "/a /b+1 /c+1", do: []string{
		"get /a => ;held=0.0", "get /b => Robots-Gate-Delay: 1.0;src=crawl-delay;line=2;held=~1.0", "get /c => ;held=~1.0",
	}},
	{name: "a fraction", robots: delay("1.5"), do: []string{"get /a => Robots-Gate-Delay: 1.5;src=crawl-delay;line=2;held=0.0", "get /b => ;held=~1.5"}, arrivals: "/a /b+1.5"},
	{name: "a fraction without an integer", robots: delay(".75"), arrivals: "/a /b+0.75", do: []string{
		"get /a => Robots-Gate-Delay: 0.75;src=crawl-delay;line=2;", "get /b => ;held=~0.7",
	}},
	{name: "a comment behind it", robots: delay("1 # second"), do: []string{"get /a => Delay: 1.0;src", "get /b => ;held=~1.0"}, arrivals: "/a /b+1"},
	{name: "the longest of a group", robots: "User-agent: *\nCrawl-delay: 1\nCrawl-delay: 2\nCrawl-delay: 0.1\n", arrivals: "/a /b+2", do: []string{
		"get /a => Delay: 2.0;src=crawl-delay;line=3;", "get /b",
	}},
	{name: "the group of the crawler", robots: byGroup, arrivals: "/a /b+1 /c+2", do: []string{
		"curl -A One/1 URL/a => line=7;held=0.0", "curl -A Else/1 URL/b => Delay: 1.0;src=crawl-delay;line=3;held=~1.0",
		"curl -A One/1 URL/c => Delay: 2.0;src=crawl-delay;line=7;held=~2.0",
	}},
	{name: "a group without a delay", robots: byGroup, arrivals: "/a /b+0", do: []string{
		"curl -A Two/1 URL/a => 200 | !Robots-Gate-Delay", "curl -A Two/1 URL/b => 200 | !Robots-Gate-Delay",
	}},
	{name: "a start without a delay counts", robots: byGroup, do: []string{"curl -A Two/1 URL/a", "curl -A One/1 URL/b => ;held=~2.0"}, arrivals: "/a /b+2"},
	{name: "a group of two tokens", robots: "User-agent: One\nUser-agent: Two\nCrawl-delay: 1\n", arrivals: "/a /b+1 /c+0", do: []string{
		"curl -A One/1 URL/a => line=3;held=0.0", "curl -A Two/1 URL/b => line=3;held=~1.0",
		"curl -A Else/1 URL/c => 200 | !Robots-Gate-Delay",
	}},
	{name: "a token in other letters", robots: "user-agent: ONE\ncrawl-DELAY: 1\n", arrivals: "/a /b+1", do: []string{
		"curl -A One/1 URL/a", "curl -A One/1 URL/b => line=2;held=~1.0",
	}},
	{name: "the tokens directly above", robots: "User-agent: One\nCrawl-delay: 2\nUser-agent: Two\nCrawl-delay: 1\nDisallow: /x\n", arrivals: "/a /b+1", do: []string{
		"curl -A One/1 URL/a => Delay: 2.0;src=crawl-delay;line=2;held=0.0",
		"curl -A Two/1 URL/b => Delay: 1.0;src=crawl-delay;line=4;held=~1.0", "curl -A Two/1 URL/x => 403",
	}},
	{name: "two groups of a token", robots: "User-agent: One\nDisallow: /x\n\nUser-agent: Two\nDisallow: /y\n\nUser-agent: One\nCrawl-delay: 1\n", arrivals: "/a /b+1", do: []string{
		"curl -A One/1 URL/a", "curl -A One/1 URL/b => line=8;held=~1.0",
	}},
	{name: "the second product token", robots: "User-agent: SecondBot\nCrawl-delay: 1\n", arrivals: "/a /b+1", do: []string{
		"curl -A Tokens/1 URL/a", `curl -A Tokens/1 URL/b => line=2;held=~1.0 | token="SecondBot"`,
	}},
	{name: "zero", robots: delay("0"), do: []string{"get /a => Robots-Gate-Delay: 0.0;line=2", "get /b => !;held="}, arrivals: "/a /b+0"},
	{name: "negative", robots: delay("-2"), do: []string{"get /a => !Robots-Gate-Delay", "get /b"}, arrivals: "/a /b+0"},
	{name: "garbage", robots: delay("soon"), do: []string{"get /a => !Robots-Gate-Delay", "get /b"}, arrivals: "/a /b+0"},
	{name: "an exponent", robots: delay("1e3"), do: []string{"get /a => !Robots-Gate-Delay", "get /b"}, arrivals: "/a /b+0"},
	{name: "infinity", robots: delay("Infinity"), do: []string{"get /a => !Robots-Gate-Delay", "get /b"}, arrivals: "/a /b+0"},
	{name: "empty", robots: "User-agent: *\nCrawl-delay:\n", do: []string{"get /a => !Robots-Gate-Delay", "get /b"}, arrivals: "/a /b+0"},
	{name: "huge", robots: delay("99999999999999999999999999"), arrivals: "/a", do: []string{
		"get /a => Delay: 1000000000.0;src=crawl-delay;line=2;held=0.0", "curl URL/b => 429 | Retry-After: 1",
	}},
	{name: "min_delay", gate: "min", robots: unpaced, arrivals: "/a /b+1", do: []string{
		"get /a => Robots-Gate-Delay: 1.0;src=min-delay;held=0.0", "get /b => Robots-Gate-Delay: 1.0;src=min-delay;held=~1.0",
	}},
	{name: "min_delay without a robots.txt", gate: "min", answers: map[string]kitAnswer{"/robots.txt": {status: 404}}, arrivals: "/a /b+1", do: []string{
		"get /a => reason=unavailable", "get /b => ;src=min-delay;held=~1.0",
	}},
	{name: "min_delay with an override", gate: "min", robots: "User-agent: *\nDisallow: /\n", arrivals: "/allowed/a /allowed/b+1", do: []string{
		"get /allowed/a => reason=override", "get /allowed/b => ;src=min-delay;held=~1.0",
	}},
	{name: "min_delay beside an announced delay", gate: "min", robots: delay("2"), arrivals: "/a /b+1", do: []string{
		"get /a => Robots-Gate-Delay: 2.0;line=2\r", "get /b => Robots-Gate-Delay: 2.0;line=2\r",
	}},
	{name: "a longer min_delay", gate: "longer", do: []string{"get /a => Delay: 2.0;src=min-delay;held=0.0", "get /b => Delay: 2.0;src=min-delay;held=~2.0"}, arrivals: "/a /b+2"},
	{name: "a shorter min_delay", gate: "shorter", arrivals: "/a /b+1", do: []string{
		"get /a => Delay: 1.0;src=crawl-delay;line=2;", "get /b => Delay: 1.0;src=crawl-delay;line=2;held=~1.0",
	}},
	{name: "an equal min_delay", gate: "longer", robots: delay("2"), do: []string{"get /a => Delay: 2.0;src=crawl-delay;line=2;", "get /b"}, arrivals: "/a /b+2"},
	{name: "announce", gate: "announce", do: []string{"get /a => Robots-Gate-Delay: 1.0;line=2\r", "get /b => Robots-Gate-Delay: 1.0;line=2\r"}, arrivals: "/a /b+0"},
	{name: "unpaced", robots: unpaced, do: []string{"get /a => !Robots-Gate-Delay", "get /b => !Robots-Gate-Delay", "get /c"}, arrivals: "/a /b+0 /c+0"},
}

var headerCases = []kitCase{
	{name: "after the distance", do: []string{"get /a", "pass 1100ms", "get /b => Robots-Gate-Delay: 1.0;src=crawl-delay;line=2;held=0.0"}, arrivals: "/a /b+1.1"},
	{name: "three wait in order", do: []string{"get /a", "& get /b => ;held=~1", "& get /c => ;held=~2", "& get /d => ;held=~3"}, arrivals: "/a /b+1 /c+1 /d+1"},
	{name: "http and https are two origins", do: []string{"get /a", "curl TLS/b => 200 | ;held=0.0", "get /c => ;held=~1.0"}, arrivals: "/a /b+0 /c"},
	{name: "a denied request neither waits nor counts", robots: delay("2") + "Disallow: /private/\n", arrivals: "/a /b+2", do: []string{
		"get /a", "pass 1s", "curl URL/private/ => 403 | Robots-Gate-Decision: deny | Robots-Gate-Delay: 2.0;line=2\r",
		"get /b => ;held=~1.0",
	}},
	{name: "robots.txt through the gate neither waits nor counts", robots: delay("2"), arrivals: "/a /b+2", do: []string{
		"get /a", "pass 1s", "curl URL/robots.txt => 200 | Crawl-delay: 2", "get /b => ;held=~1.0",
	}},
	{name: "an unreachable robots.txt", answers: map[string]kitAnswer{"/robots.txt": {status: 500}}, do: []string{
		"curl URL/a => 403 | reason=unreachable | !;held=", "curl URL/b => 403",
	}},
	{name: "a slow robots.txt does not delay its page", robots: delay("2"), answers: map[string]kitAnswer{"/robots.txt": {takes: time.Second}}, arrivals: "/a", do: []string{
		"get /a => ;held=0.0",
	}},
	{name: "a fetch of robots.txt delays the page after it", robots: delay("2"), do: []string{"get /a", "pass 2s", "refresh", "get /b => ;held=~2.0"}, arrivals: "/a /b+4"},
	{name: "a slow answer does not delay the next start", answers: map[string]kitAnswer{"/a": {takes: 3 * time.Second}}, arrivals: "/a /b+1", do: []string{
		"& get /a", "get /b => ;held=~1.0",
	}},
}

var refusalCases = []kitCase{
	{name: "a late turn is refused", gate: "short", robots: delay("2"), arrivals: "/a /c+2", do: []string{
		"get /a",
		"curl URL/b => 429 | Retry-After: ~2.5 | Delay: 2.0;src=crawl-delay;line=2;retry=~2.0 | Decision: allow;reason=no-match | !;held=",
		"pass 2s", "get /c",
	}},
	{name: "the problem", gate: "short", robots: delay("2"), arrivals: "/a", do: []string{
		"get /a",
		`curl URL/b => Content-Type: application/problem+json | "type": "urn:robotsgate:pace" | "status": 429 | asks for 2 s between | ` +
			`Cache-Control: no-store | Content-Length: | "reason": "no-match" | Robots-Gate-Id: `,
	}},
	{name: "Proxy-Status", gate: "short", robots: delay("2"), arrivals: "/a", do: []string{
		"get /a",
		`curl URL/b => Proxy-Status: robotsgate;error=http_request_denied;details="pace: robots.txt line 2: Crawl-delay: 2"`,
	}},
	{name: "in HTML", gate: "short", robots: delay("2"), do: []string{"get /a", "curl -H 'Accept: text/html' URL/b => 429 | Content-Type: text/html | <title>"}, arrivals: "/a"},
	{name: "in text", gate: "short", robots: delay("2"), arrivals: "/a", do: []string{
		"get /a", "curl -H 'Accept: text/plain' URL/b => 429 | Content-Type: text/plain | asks for 2 s between",
	}},
	{name: "HEAD is refused", gate: "short", robots: delay("2"), do: []string{"get /a", "curl -I URL/b => 429 | Retry-After: ~2.5 | !urn:robotsgate"}, arrivals: "/a"},
	{name: "POST is refused", gate: "short", robots: delay("2"), do: []string{"get /a", "curl -d body URL/b => 429 | Retry-After: ~2.5"}, arrivals: "/a"},
	{name: "in a tunnel, HTTP/2", gate: "short", robots: delay("2"), do: []string{"curl TLS/a", "curl TLS/b => 429 | HTTP/2 429 | retry=~2.0"}, arrivals: "/a"},
	{name: "in a tunnel, HTTP/1", gate: "short", robots: delay("2"), arrivals: "/a", do: []string{
		"curl --http1.1 TLS/a", "curl --http1.1 TLS/b => 429 | HTTP/1.1 429 | retry=~2.0",
	}},
	{name: "a third would come too late", gate: "short", do: []string{"get /a", "& get /b => ;held=~1.0", "curl URL/c => 429 | retry=~2.0"}, arrivals: "/a /b+1"},
	{name: "a refused request takes no place", gate: "short", robots: delay("2"), arrivals: "/a /d+2", do: []string{
		"get /a", "curl URL/b => 429", "curl URL/c => 429 | Retry-After: ~2.5", "pass 1s", "get /d => ;held=~1",
	}},
	{name: "the longest max_wait that is not", gate: "short", robots: delay("1.4"), do: []string{"get /a", "get /b => ;held=~1.4"}, arrivals: "/a /b+1.4"},
	{name: "max_wait 0s", gate: "no wait", do: []string{"get /a", "curl URL/b => 429 | Retry-After: ~1.5", "pass 1s", "get /c => ;held=0.0"}, arrivals: "/a /c+1"},
	{name: "a delay above max_delay", gate: "max delay", robots: delay("2.5"), arrivals: "/a /c+2.5", do: []string{
		"get /a => ;held=0.0", "curl URL/b => 429 | Retry-After: ~3.5 | Delay: 2.5;src=crawl-delay;line=2;retry=~2.5",
		"pass 2500ms", "get /c => ;held=0.0",
	}},
	{name: "a delay of max_delay", gate: "max delay", robots: delay("2"), do: []string{"get /a", "get /b => ;held=~2.0"}, arrivals: "/a /b+2"},
	{name: "many turns of short delays", gate: "max delay", do: []string{"get /a", "& curl URL/b", "& curl URL/c", "& get /d => ;held=~3.0"}, arrivals: "/a /b+1 /c+1 /d+1"},
	{name: "the queue is full", gate: "queue", arrivals: "/a /b+1 /c+1 /e+1", do: []string{
		"get /a", "& get /b", "& get /c", "curl URL/d => 429 | As many requests wait | Retry-After: ~3.5", "wait", "get /e",
	}},
	{name: "the queue is that of one origin", gate: "queue", do: []string{"get /a", "& get /b", "& get /c", "curl TLS/d => 200 | ;held=0.0"}, arrivals: "/a /d /b /c"},
	{name: "the queue is full of another crawler", gate: "queue", arrivals: "/a /b+1 /d+1", do: []string{
		"get /a", "& curl -A One/1 URL/b", "& curl -A One/1 URL/c => 429 | As many requests wait", "curl -A Two/1 URL/d => 200",
	}},
	{name: "curl --retry", gate: "no wait", do: []string{"get /a", "curl --retry 2 URL/b => HTTP/1.1 429 | 200"}, arrivals: "/a /b"},
	{name: "curl --retry-all-errors waits as told", gate: "no wait", robots: delay("2"), arrivals: "/a /b", do: []string{
		"get /a", "curl --retry 3 --retry-all-errors URL/b => HTTP/1.1 429 | 200",
	}},
}

var turnCases = []kitCase{
	{name: "two crawlers take turns", arrivals: "/a1 /a2+1 /b1+1 /a3+1 /b2+1", do: []string{
		"curl -A One/1 URL/a1", "& curl -A One/1 URL/a2", "& curl -A One/1 URL/a3", "& curl -A Two/1 URL/b1 => ;held=~2",
		"& curl -A Two/1 URL/b2",
	}},
	{name: "three crawlers take turns", arrivals: "/a1 /a2+1 /b1+1 /c1+1 /a3+1", do: []string{
		"curl -A One/1 URL/a1", "& curl -A One/1 URL/a2", "& curl -A One/1 URL/a3", "& curl -A Two/1 URL/b1",
		"& curl -A Else/1 URL/c1",
	}},
	{name: "one crawler in order of arrival", arrivals: "/a /b+1 /c+1 /d+1", do: []string{
		"curl -A Two/1 URL/a", "& curl -A Two/1 URL/b", "& curl -A Two/2 URL/c", "& curl -A Twofold/1 URL/d",
	}},
	{name: "a long delay keeps its turn", arrivals: "/a1 /a2+0.5 /b1+2 /a3+0.5 /a4+0.5", do: []string{
		"curl -A One/1 URL/a1", "& curl -A One/1 URL/a2", "& curl -A Two/1 URL/b1", "& curl -A One/1 URL/a3",
		"& curl -A One/1 URL/a4",
	}, robots: "User-agent: One\nDisallow:\nCrawl-delay: 0.5\n\nUser-agent: Two\nDisallow:\nCrawl-delay: 2\n"},
	{name: "a request without a delay takes turns", robots: byGroup, arrivals: "/a1 /p+2 /p+0 /a3+2", do: []string{
		"curl -A One/1 URL/a1", "& curl -A One/1 URL/p", "& curl -A Two/1 URL/p => 200 | held=~2", "& curl -A One/1 URL/a3",
	}},
	{name: "a client that leaves costs no turn", robots: delay("2"), arrivals: "/a /c+2", do: []string{
		"get /a", "& curl --max-time 1 URL/b => exit status 28", "& get /c => ;held=~2",
	}},
	{name: "a client that leaves over HTTP/2", robots: delay("2"), arrivals: "/a /c+2", do: []string{
		"curl TLS/a", "& curl --max-time 1 TLS/b => exit status 28", "& curl TLS/c => 200 | ;held=~2",
	}},
	{name: "the place of a client that leaves", gate: "queue", robots: delay("2"), arrivals: "/a /b+2 /d+2", do: []string{
		"get /a", "& get /b", "& curl --max-time 1 URL/c => exit status 28", "pass 1200ms", "curl URL/d => 200",
	}},
	{name: "all clients leave", robots: delay("2"), arrivals: "/a", do: []string{
		"get /a", "& curl --max-time 0.8 URL/b", "& curl --max-time 0.8 URL/c", "wait", "pass 200ms", "queue => no queue",
	}},
}

// busy is an origin that answers 429 or 503 for some paths. Its robots.txt asks for no delay.
func busy(name, gate string, answer kitAnswer, do []string, arrivals string) kitCase {
	if answer.status == 0 {
		answer.status = 429
	}
	answers := map[string]kitAnswer{"/busy": answer, "/busy2": answer, "/slow": {takes: time.Second}}
	return kitCase{name: name, gate: gate, robots: unpaced, answers: answers, do: do, arrivals: arrivals}
}

var (
	afterBusy = []string{"curl URL/busy => 429 | !Proxy-Status: robotsgate | !;held=", "get /a => Robots-Gate-Delay: ~2.0;src=back-off;held=~2.0"}
	notPaused = []string{"curl URL/busy", "get /a => !back-off"}
)

var backOffCases = []kitCase{
	busy("429 with seconds", "back off", kitAnswer{retryAfter: "2"}, afterBusy, "/busy /a+2"),
	busy("503 with seconds", "back off", kitAnswer{status: 503, retryAfter: "2"}, []string{
		"curl URL/busy => 503 | Retry-After: 2\r", "get /a => ;src=back-off;held=~2.0",
	}, "/busy /a+2"),
	busy("a date", "back off", kitAnswer{retryDate: 2 * time.Second}, afterBusy, "/busy /a+2"),
	busy("a date of a clock that is ahead", "back off", kitAnswer{retryDate: 2 * time.Second, clock: time.Hour}, afterBusy, "/busy /a+2"),
	busy("a date of a clock that is behind", "back off", kitAnswer{retryDate: 2 * time.Second, clock: -time.Hour}, afterBusy, "/busy /a+2"),
	busy("a date in the past", "back off", kitAnswer{retryDate: -time.Hour}, notPaused, "/busy /a+0"),
	busy("0 seconds", "back off", kitAnswer{retryAfter: "0"}, notPaused, "/busy /a+0"),
	busy("a year", "back off 2s", kitAnswer{retryAfter: "31536000"}, afterBusy, "/busy /a+2"),
	busy("a date in a year", "back off 2s", kitAnswer{retryDate: 365 * 24 * time.Hour}, afterBusy, "/busy /a+2"),
	busy("a number that no integer holds", "back off 2s", kitAnswer{retryAfter: "99999999999999999999999"}, afterBusy, "/busy /a+2"),
	busy("negative seconds", "back off 2s", kitAnswer{retryAfter: "-5"}, afterBusy, "/busy /a+2"),
	busy("a broken date", "back off 2s", kitAnswer{retryAfter: "Mon, 99 Foo 2026 00:00:00 GMT"}, afterBusy, "/busy /a+2"),
	busy("none", "back off", kitAnswer{}, []string{"curl URL/busy", "get /a => Delay: ~5.0;src=back-off;held=~5.0"}, "/busy /a+5"),
	busy("two in a row, bounded", "back off 7s", kitAnswer{}, []string{"curl URL/busy", "curl URL/busy2 => 429 | held=~5.0", "get /a => held=~7.0"}, "/busy /busy2+5 /a+7"),
	busy("another answer ends the series", "back off 7s", kitAnswer{}, []string{
		"curl URL/busy", "get /a => held=~5.0", "curl URL/busy2 => 429 | !;held=", "get /b => held=~5.0",
	}, "/busy /a+5 /busy2+0 /b+5"),
	busy("500 asks for no pause", "back off", kitAnswer{status: 500, retryAfter: "9"}, notPaused, "/busy /a+0"),
	busy("404 asks for no pause", "back off", kitAnswer{status: 404, retryAfter: "9"}, notPaused, "/busy /a+0"),
	busy("back_off 0s", "", kitAnswer{retryAfter: "9"}, notPaused, "/busy /a+0"),
	busy("another token is not paused", "back off", kitAnswer{retryAfter: "2"}, []string{
		"curl -A One/1 URL/busy", "curl -A Two/1 URL/a => 200 | !;held=", "curl -A One/2 URL/b => 200 | back-off;held=~2.0",
	}, "/busy /a+0 /b+2"),
	busy("another token of the same crawler", "back off", kitAnswer{retryAfter: "2"}, []string{"curl -A Three/1 URL/busy", "curl -A Four/1 URL/a => 200 | !;held="}, "/busy /a+0"),
	busy("another origin is not paused", "back off", kitAnswer{retryAfter: "9"}, []string{"curl URL/busy", "curl TLS/a => 200 | !;held="}, "/busy /a+0"),
	busy("one request goes first", "back off", kitAnswer{retryAfter: "2"}, []string{
		"curl URL/busy", "& curl URL/slow", "& curl URL/p", "& curl URL/p => 200 | back-off;held=~3",
	}, "/busy /slow+2 /p+1 /p+0"),
	busy("the first is refused again", "back off", kitAnswer{retryAfter: "2"}, []string{"curl URL/busy", "& curl URL/busy2 => 429", "& get /b => held=~4"}, "/busy /busy2+2 /b+2"),
	busy("a pause above max_wait", "back off 1h", kitAnswer{retryAfter: "60"}, []string{
		"curl URL/busy",
		"curl URL/a => 429 | Retry-After: ~60 | Delay: ~60.0;src=back-off;retry=~60.0 | Decision: allow;reason=no-match | 429 or 503 | urn:robotsgate:pace",
	}, "/busy"),
	busy("429 to every request", "back off 1h", kitAnswer{}, []string{
		"curl URL/busy", "curl URL/busy2 => 429 | retry=~5", "pass 5s", "curl URL/busy => 429 | !urn:robotsgate",
		"curl URL/busy2 => 429 | retry=~10",
	}, "/busy /busy+5"),
	busy("a pause in a tunnel", "back off", kitAnswer{retryAfter: "2"}, []string{"curl TLS/busy => HTTP/2 429", "curl TLS/a => 200 | back-off;held=~2.0"}, "/busy /a+2"),
	{name: "a pause and a Crawl-delay", gate: "back off", answers: map[string]kitAnswer{"/busy": {status: 429, retryAfter: "2"}}, arrivals: "/busy /a+2 /b+1", do: []string{
		"curl URL/busy", "& get /a => ;src=back-off;held=~2", "& get /b => held=~3",
	}},
	{name: "a pause shorter than the Crawl-delay", gate: "back off", robots: delay("2"), answers: map[string]kitAnswer{"/busy": {status: 429, retryAfter: "1"}}, arrivals: "/busy /a+2", do: []string{
		"curl URL/busy", "get /a => held=~2",
	}},
}

// destinationCases are requests with each value of Sec-Fetch-Dest, free and counted.
func destinationCases() (all []kitCase) {
	for _, dest := range []string{"document", "iframe", "frame", "empty"} {
		all = append(all, kitCase{name: "free: not for " + dest, gate: "free", do: []string{"get /a", "curl -H 'Sec-Fetch-Dest: " + dest + "' URL/b => 200 | ;held=~1.0"}, arrivals: "/a /b+1"})
	}
	for dest := range strings.FieldsSeq("audio audioworklet embed font image json manifest object paintworklet report script serviceworker " +
		"sharedworker style track video worker xslt") {
		all = append(all, kitCase{name: "free: " + dest, gate: "free", do: []string{"get /a", "curl -H 'Sec-Fetch-Dest: " + dest + "' URL/b => 200 | !;held="}, arrivals: "/a /b+0"})
	}
	return append(all,
		kitCase{name: "free: no field", gate: "free", do: []string{"get /a", "get /b => ;held=~1.0"}, arrivals: "/a /b+1"},
		kitCase{name: "free parts do not count", gate: "free", robots: delay("2"), arrivals: "/a /b+1 /c+1", do: []string{
			"get /a", "pass 1s", "curl -H 'Sec-Fetch-Dest: image' URL/b", "get /c => ;held=~1.0",
		}},
		kitCase{name: "counted: image", do: []string{"get /a", "curl -H 'Sec-Fetch-Dest: image' URL/b => 200 | ;held=~1.0"}, arrivals: "/a /b+1"},
		kitCase{name: "counted: style", do: []string{"curl -H 'Sec-Fetch-Dest: style' URL/a", "get /b => ;held=~1.0"}, arrivals: "/a /b+1"},
	)
}

var reportCases = []kitCase{
	{name: "report: would hold", gate: "report", arrivals: "/a /b+0", do: []string{
		"get /a => Delay: 1.0;src=crawl-delay;line=2;would-hold=0.0",
		"get /b => Delay: 1.0;src=crawl-delay;line=2;would-hold=~1.0", "audit /b => !\"paced\":\"refused\"",
	}},
	{name: "report: starts count", gate: "report", arrivals: "/a /b+1.1 /c+0", do: []string{
		"curl URL/a", "pass 1100ms", "get /b => ;would-hold=0.0", "get /c => ;would-hold=~1.0",
	}},
	{name: "report: would refuse", gate: "report", robots: delay("3"), arrivals: "/a /b+0", do: []string{
		"get /a", "get /b => Delay: 3.0;src=crawl-delay;line=2;would-refuse\r", "audit /b => \"status\":200 | !\"refused\"",
	}},
	{name: "report: a pause", gate: "report", robots: unpaced, answers: map[string]kitAnswer{"/busy": {status: 429, retryAfter: "60"}}, arrivals: "/busy /a+0", do: []string{
		"curl URL/busy => 429", "get /a => ;src=back-off;would-refuse\r",
	}},
	{name: "report: a denied request", gate: "report", robots: "User-agent: *\nCrawl-delay: 1\nDisallow: /private/\n", arrivals: "/private/a /private/b+0", do: []string{
		"curl URL/private/a => 200 | enforced=?0", "curl URL/private/b => 200 | enforced=?0",
	}},
}

var tunnelCases = []kitCase{
	{name: "https over HTTP/2", do: []string{"curl TLS/a => HTTP/2 200 | ;held=0.0", "curl TLS/b => HTTP/2 200 | ;held=~1.0"}, arrivals: "/a /b+1"},
	{name: "https over HTTP/1", do: []string{"curl --http1.1 TLS/a => HTTP/1.1 200 | ;held=0.0", "curl --http1.1 TLS/b => ;held=~1.0"}, arrivals: "/a /b+1"},
	{name: "one connection", do: []string{"curl URL/a URL/b URL/c => ;held=~1.0"}, arrivals: "/a /b+1 /c+1"},
	{name: "one tunnel", do: []string{"curl TLS/a TLS/b TLS/c => ;held=~1.0"}, arrivals: "/a /b+1 /c+1"},
	{name: "streams of one connection", do: []string{"curl --parallel --parallel-immediate TLS/p TLS/p TLS/p TLS/p => ;held=~3.0"}, arrivals: "/p /p+1 /p+1 /p+1"},
	{name: "http in a tunnel", do: []string{"curl -p URL/a => 200 | ;held=0.0", "curl -p URL/b => 200 | ;held=~1.0", "get /c => ;held=~1.0"}, arrivals: "/a /b+1 /c+1"},
	{name: "a passthrough tunnel", gate: "passthrough", do: []string{"curl -k TLS/a => 200 | !Robots-Gate", "curl -k TLS/b => 200"}, arrivals: "/a /b+1"},
	{name: "a passthrough tunnel is one start", gate: "passthrough", do: []string{"curl -k TLS/a TLS/b TLS/c => 200"}, arrivals: "/a /b+0 /c+0"},
	{name: "a refused passthrough tunnel", gate: "passthrough", robots: delay("2"), arrivals: "/a", do: []string{
		"curl -k TLS/a => 200",
		"sh curl -sv -k TLS/b 2>&1 => < HTTP/1.1 429 | < Retry-After: ~2.5 | < Robots-Gate-Delay: 2.0;src=crawl-delay;line=2;retry=~2.0",
	}},
	{name: "a WebSocket", robots: delay("2"), arrivals: "/a /ws+2", do: []string{
		"get /a",
		webSocket + "URL/ws => HTTP/1.1 101 | upgraded | ;held=~2.0",
	}},
	{name: "a WebSocket over TLS", robots: delay("2"), arrivals: "/a /ws+2", do: []string{
		"curl TLS/a",
		webSocket + "TLS/ws => HTTP/1.1 101 | upgraded | ;held=~2.0",
	}},
}

// clientCases have a long delay, since some of the clients take a second to start.
var clientCases = slices.Concat(kitClient("httpx"), kitClient("requests"), kitClient("scrapy"), kitClient("node"), []kitCase{
	{name: "node, httpx, requests and scrapy together", arrivals: "/a /p /p /p /p", do: []string{
		"curl URL/a", "& httpx URL/p => 200", "& requests URL/p => 200", "& scrapy URL/p => 200", "& node URL/p => 200",
	}},
})

// kitClient returns cases of a client that is held, and of one that is refused.
func kitClient(name string) []kitCase {
	held, refused := " => 200 | Delay: 4.0;src=crawl-delay;line=2;held=", delay("60")
	answer := " => 429 | Retry-After: | Delay: 60.0;src=crawl-delay;line=2;retry="
	if name == "scrapy" {
		answer = " => failed 3 times | 429 Unknown Status"
	}
	return []kitCase{
		{name: name, robots: delay("4"), do: []string{"curl URL/a", name + " URL/b" + held}, arrivals: "/a /b+4"},
		{name: name + ", https", robots: delay("4"), do: []string{"curl TLS/a", name + " TLS/b" + held}, arrivals: "/a /b+4"},
		{name: name + " is refused", gate: "no wait", robots: refused, do: []string{"curl URL/a", name + " URL/b" + answer}, arrivals: "/a"},
		{name: name + " is refused, https", gate: "no wait", robots: refused, do: []string{"curl TLS/a", name + " TLS/b" + answer}, arrivals: "/a"},
	}
}

var requestCases = []kitCase{
	{name: "HEAD", do: []string{"curl -I URL/a => 200 | ;held=0.0", "curl -I URL/b => 200 | ;held=~1.0"}, arrivals: "/a /b+1"},
	{name: "POST", do: []string{"curl -d 12345 URL/a", "curl -d 12345 URL/b => 200 | page, 5 bytes received | ;held=~1.0"}, arrivals: "/a /b+1"},
	{name: "a long upload", arrivals: "/a /b+1", do: []string{
		"curl URL/a",
		"sh head -c 3000000 /dev/zero | curl -s -i --data-binary @- URL/b => page, 3000000 bytes received | ;held=~1.0",
	}},
	{name: "an upload of unknown length", arrivals: "/a /b+1", do: []string{
		"curl URL/a", "sh head -c 300000 /dev/zero | curl -s -i -T - URL/b => page, 300000 bytes received | ;held=~1.0",
	}},
	{name: "Expect: 100-continue", robots: delay("2"), arrivals: "/a /b+2", do: []string{
		"curl URL/a",
		"curl -d 12345 --expect100-timeout 20 -H 'Expect: 100-continue' URL/b => 200 | HTTP/1.1 100 | page, 5 bytes received | ;held=~2.0",
	}},
	{name: "Expect: 100-continue is refused", gate: "no wait", robots: delay("2"), arrivals: "/a", do: []string{
		"curl URL/a", "curl -d 12345 --expect100-timeout 20 -H 'Expect: 100-continue' URL/b => 429 | !HTTP/1.1 100",
	}},
	{name: "OPTIONS", do: []string{"curl -X OPTIONS URL/a", "curl -X OPTIONS URL/b => 200 | ;held=~1.0"}, arrivals: "/a /b+1"},
	{name: "a range", do: []string{"curl -r 0-3 URL/a", "curl -r 0-3 URL/b => 200 | ;held=~1.0"}, arrivals: "/a /b+1"},
	{name: "nothing is sent before the turn", robots: delay("2"), do: []string{"curl URL/a", `curl -o /dev/null -w '%{time_starttransfer}' URL/b => ~2.0`}, arrivals: "/a /b+2"},
}

var recordCases = []kitCase{
	{name: "audit: held", do: []string{"curl URL/a", "curl URL/b", `audit /a => !"paced"`, `audit /b => "paced":~1.0 | "decision":"allow"`}, arrivals: "/a /b+1"},
	{name: "audit: refused", gate: "no wait", arrivals: "/a", do: []string{
		"curl URL/a", "curl URL/b", `audit /b => "paced":"refused","refused":"pace" | "decision":"allow" | "status":429`,
	}},
	{name: "audit: left", robots: delay("2"), do: []string{"curl URL/a", "curl --max-time 1 URL/b", `audit /b => !"paced":"refused"`}, arrivals: "/a"},
	{name: "audit: unpaced", robots: unpaced, do: []string{"curl URL/a", `audit /a => !"paced"`}, arrivals: "/a"},
	{name: "audit: a tunnel", gate: "passthrough", do: []string{"curl -k TLS/a", "curl -k TLS/b => 200"}, arrivals: "/a /b+1"},
	{name: "the API shows the queue", robots: delay("2"), arrivals: "/a /b+2 /c+2", do: []string{
		"curl URL/a", "& curl URL/b", "& curl URL/c", "pass 1s", "queue => waiting 2, longest ~1.0", "wait", "queue => no queue",
	}},
	{name: "the status page shows the queue", robots: delay("2"), arrivals: "/a /b+2", do: []string{
		"curl URL/a", "& curl URL/b", "admin / => Waiting for their turn | <bdi>URL</bdi>",
	}},
	{name: "metrics", gate: "metrics", robots: "User-agent: *\nDisallow:\nCrawl-delay: 1\nUser-agent: Slow\nCrawl-delay: 9\n", arrivals: "/a /b+1", do: []string{
		"curl URL/a", "& curl URL/b", "admin /metrics => ^robotsgate_pace_waiting 1$", "wait", "curl -A Slow/1 URL/c => 429",
		"admin /metrics => ^robotsgate_pace_waiting 0$ | ^robotsgate_pace_held_total 1$ | ^robotsgate_pace_refused_total 1$ | " +
			"^robotsgate_pace_held_seconds_count 1$ | ^robotsgate_pace_held_seconds_sum ~1.0",
	}},
}

var endCases = []kitCase{
	{name: "a reload keeps what waits", gate: "reload", robots: unpaced, arrivals: "/a /b+1 /e+1", do: []string{
		"curl URL/a", "& curl URL/b => 200 | Delay: 1.0;src=min-delay;held=~1",
		"reload pace: {min_delay: 1s, max_wait: 0s} => true", "wait", "curl URL/d => 429 | Delay: 1.0;src=min-delay;retry=",
		"pass 1s", "curl URL/e => 200",
	}},
	{name: "the gate goes on for shutdown_delay", gate: "drain later", robots: unpaced, arrivals: "/a /b+2", do: []string{
		"curl URL/a", "& curl URL/b => 200 | src=min-delay;held=~2.0", "terminate => true",
	}},
	{name: "the gate ends", gate: "drain", arrivals: "/a", do: []string{
		"curl URL/a", "& curl URL/b => 503 | urn:robotsgate:ending | Retry-After: 1", "& curl URL/c => 503", "terminate => true",
		"wait",
	}},
}
