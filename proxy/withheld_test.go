package proxy_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"golang.org/x/net/http2"

	"robotsgate/internal/ca"
	"robotsgate/internal/gatetest"
	"robotsgate/policy"
	"robotsgate/policy/usage"
	"robotsgate/proxy"
	"robotsgate/proxy/internal/proxytest"
	"robotsgate/proxy/internal/response"
)

// trains makes the crawler one that fetches for training, and the gate refuse what is reserved.
func trains(o proxytest.Options) proxytest.Options {
	engine := o.Engine
	o.Engine = func(c *policy.Config) {
		c.Usage.Reserved, c.Crawlers.Default.Purposes = policy.RefuseReserved, []usage.Purpose{usage.TrainAI}
		if engine != nil {
			engine(c)
		}
	}
	return o
}

// TestWithheldConnections: the connection of a withheld response ends, however the response goes on.
func TestWithheldConnections(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Usage: train-ai=n\r\nContent-Type: text/html\r\n"
	const page = "<html><head></head><body>" + originMark
	short := func(framing, body string) string { return head + framing + "\r\n\r\n" + body }
	for _, c := range []struct {
		name  string
		reply string
		flood string // repeated behind it until the gate closes the connection
		hangs bool   // the origin then sends nothing
		whole bool   // it may have been read to its end with its head: then the connection is kept
	}{
		{name: "of known length", reply: short("Content-Length: "+strconv.Itoa(len(page)), page), whole: true},
		{name: "in chunks", reply: short("Transfer-Encoding: chunked", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(page), page)), whole: true},
		{name: "in chunks, with trailers", reply: short("Transfer-Encoding: chunked\r\nTrailer: X-Origin", fmt.Sprintf("%x\r\n%s\r\n0\r\nX-Origin: ORIGIN\r\n\r\n", len(page), page)), whole: true},
		{name: "40 KiB", reply: short("Content-Length: "+strconv.Itoa(40<<10), page+strings.Repeat("x", 40<<10-len(page)))},
		{name: "known to be long", reply: short("Content-Length: 1000000000", page), flood: "x"},
		{name: "without end, in chunks", reply: short("Transfer-Encoding: chunked", ""), flood: "5\r\nhello\r\n"},
		{name: "without end, to the end of the connection", reply: short("Connection: close", page), flood: "hello"},
		{name: "silent in the head", reply: short("Content-Length: 1000", "<html><head>"), hangs: true},
		{name: "silent in the body", reply: short("Content-Length: 1000", page), hangs: true},
		{name: "silent in a chunk", reply: short("Transfer-Encoding: chunked", "fff\r\n"+page), hangs: true},
		{name: "silent before its body", reply: short("Content-Length: 60000", ""), hangs: true},
		{name: "broken off", reply: short("Content-Length: 1000", page+gatetest.BreakOffHere)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := gatetest.StartLineOrigin(t, gatetest.WithoutRobots(func(_ int, conn net.Conn, _ *http.Request) bool {
				reply, last := strings.CutSuffix(c.reply, gatetest.BreakOffHere)
				io.WriteString(conn, reply)
				for sent := 0; c.flood != "" && sent < 64<<20; sent += 1000 * len(c.flood) {
					if _, err := io.WriteString(conn, strings.Repeat(c.flood, 1000)); err != nil {
						return false
					}
				}
				if c.flood != "" {
					t.Error("the gate has read 64 MiB of the response")
				}
				return !last
			}))
			g := proxytest.Start(t, trains(proxytest.Options{Proxy: func(o *proxy.Options) { o.Settings.Tags.HeadTimeout = 300 * time.Millisecond }}))
			client := g.Client()
			for range 2 {
				start := time.Now()
				resp, body := proxytest.Send(t, client, http.MethodGet, "http://"+o.Host+"/", nil)
				proxytest.WantStatus(t, resp, 403)
				proxytest.WantHeader(t, resp, "Robots-Gate-Decision", "deny;reason=usage")
				if strings.Contains(body, originMark) || len(resp.Trailer) > 0 {
					t.Errorf("trailers %v, body %q", resp.Trailer, body)
				}
				if took := time.Since(start); took > 5*time.Second {
					t.Errorf("answered after %v", took)
				}
				g.Next(t)
			}
			for i := 0; i < 2 && !c.whole; i++ { // one for each response, of which the first may have been used for robots.txt
				proxytest.Receive(t, o.Ended, "the end of a connection")
			}
		})
	}
}

// TestWithheldStream: of HTTP/2 only the stream is reset.
func TestWithheldStream(t *testing.T) {
	authority, err := ca.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var streams atomic.Int64
	url, conns := proxytest.StartHTTP2Origin(t, authority, func(f *http2.Framer, r *http2.MetaHeadersFrame) {
		streams.Add(1)
		proxytest.WriteHead(f, r.StreamID, false, ":status", "200", "content-usage", "train-ai=n", "content-type", "text/html")
		f.WriteData(r.StreamID, false, []byte("<html><head></head><body>"+originMark)) // and nothing more
	})
	g := proxytest.Start(t, trains(proxytest.Options{Egress: func(e *proxy.Egress) { e.Roots.AddCert(authority.Certificate()) }}))
	g.Get(url + "/robots.txt")
	before := conns.Load()
	for range 5 {
		resp, body := g.Get(url + "/")
		proxytest.WantStatus(t, resp, 403)
		if strings.Contains(body, originMark) {
			t.Errorf("got %q", body)
		}
	}
	if n := conns.Load(); n > before+1 || streams.Load() != 5 {
		t.Errorf("%d connections for %d streams", n-before, streams.Load())
	}
}

// TestUsageRemembered: what the head has said holds for answers without a head, what the header has
// said does not.
func TestUsageRemembered(t *testing.T) {
	const page = `<head><meta name="tdm-reservation" content="1"><meta name="tdm-policy" content="https://a.example/p">` +
		`<link rel="license" type="application/rsl+xml" href="https://a.example/l"><meta name="robots" content="noai"></head>`
	serve := func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		switch {
		case r.Header.Get("If-None-Match") != "":
			rw.Header().Set("Content-Usage", "search=y")
			rw.WriteHeader(http.StatusNotModified)
		case r.Header.Get("Range") != "":
			rw.WriteHeader(http.StatusPartialContent)
			io.WriteString(rw, originMark)
		default:
			rw.Header().Set("Content-Usage", "bots=n")
			io.WriteString(rw, page+originMark)
		}
	}
	const stated = "train-ai;v=n;src=robots-tag;in=meta, tdm;v=n;src=tdmrep;in=meta"
	const licenses = `"https://a.example/l";src=rsl;in=meta, "https://a.example/p";src=tdmrep;in=meta`
	t.Run("annotated", func(t *testing.T) {
		g := proxytest.Start(t, proxytest.Options{Handler: serve})
		g.Ways(t, func(t *testing.T, v proxytest.Way) {
			resp, _ := v.Get(t, "/a"+v.Name[:4], "If-None-Match", "x")
			proxytest.WantHeader(t, resp, "Robots-Gate-Usage", "search;v=y;src=content-usage;in=header")
			resp, _ = v.Get(t, "/a")
			proxytest.WantHeader(t, resp, "Robots-Gate-Usage", "bots;v=n;src=content-usage;in=header, "+stated)
			resp, _ = v.Get(t, "/a", "If-None-Match", "x")
			proxytest.WantHeader(t, resp, "Robots-Gate-Usage", "search;v=y;src=content-usage;in=header, "+stated)
			proxytest.WantHeader(t, resp, "Robots-Gate-License", licenses)
			resp, _ = v.Get(t, "/a", "Range", "bytes=0-")
			proxytest.WantHeader(t, resp, "Robots-Gate-Usage", stated)
			resp, _ = proxytest.Send(t, v.Client, http.MethodHead, v.Origin+"/a", nil)
			proxytest.WantHeader(t, resp, "Robots-Gate-Usage", "bots;v=n;src=content-usage;in=header, "+stated)
			proxytest.WantHeader(t, resp, "Robots-Gate-Meta", "remembered;age=")
			wantUsageFields(t, resp)
		})
	})
	t.Run("refused", func(t *testing.T) {
		g := proxytest.Start(t, trains(proxytest.Options{Handler: serve}))
		g.Ways(t, func(t *testing.T, v proxytest.Way) {
			for _, header := range []string{"X", "If-None-Match", "Range"} { // the first is a whole response, and withheld
				resp, body := v.Get(t, "/a", header, "x")
				proxytest.WantStatus(t, resp, 403)
				proxytest.WantHeader(t, resp, "Robots-Gate-Decision", `deny;reason=usage;token="ExampleBot";group="*";use=train-ai;src=robots-tag;in=meta`)
				if strings.Contains(body, originMark) {
					t.Errorf("got %q", body)
				}
			}
			resp, _ := proxytest.Send(t, v.Client, http.MethodHead, v.Origin+"/a", nil)
			proxytest.WantStatus(t, resp, 403)
		})
	})
}

// TestUsageHandshake: a WebSocket is not opened if the response to its handshake reserves. A 103 that
// does, does not count.
func TestUsageHandshake(t *testing.T) {
	for _, c := range []struct{ reply, want string }{
		{"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", "101"},
		{"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nContent-Usage: search=n\r\n\r\n", "101"},
		{"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nContent-Usage: train-ai=n\r\n\r\n" + originMark, "403"},
		{"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade, Tdm-Reservation\r\ntdm-reservation: 1\r\n\r\n" + originMark, "403"},
		{"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nContent-Usage : train-ai=n\r\n\r\n" + originMark, "403"},
		{"HTTP/1.1 103 Early Hints\r\nContent-Usage: train-ai=n\r\n\r\nHTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", "103"},
	} {
		o := gatetest.StartLineOrigin(t, func(n int, conn net.Conn) {
			reader := bufio.NewReader(conn)
			r, err := http.ReadRequest(reader)
			if err != nil {
				return
			}
			if r.URL.Path == "/robots.txt" {
				io.WriteString(conn, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
				return
			}
			io.WriteString(conn, c.reply)
			conn.Read(make([]byte, 1)) // until the gate closes it
		})
		g := proxytest.Start(t, trains(proxytest.Options{}))
		conn := g.Dial()
		conn.SetDeadline(time.Now().Add(proxytest.Patience))
		fmt.Fprintf(conn, "GET http://%s/ HTTP/1.1\r\nHost: %s\r\nUser-Agent: ExampleBot\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", o.Host, o.Host)
		answer := make([]byte, 4000)
		n, _ := io.ReadAtLeast(conn, answer, 200)
		if got := proxytest.StatusOf(string(answer[:n])); got != c.want || c.want == "403" && bytes.Contains(answer, []byte(originMark)) {
			t.Errorf("%q: got %q", c.reply, answer[:n])
		}
		if c.want == "403" {
			g.Next(t)
			for range 2 {
				proxytest.Receive(t, o.Ended, "the end of the connection to the origin")
			}
		}
		conn.Close()
	}
}

// TestUsageForms: people read which statement refuses, and what to do.
func TestUsageForms(t *testing.T) {
	g := proxytest.Start(t, trains(proxytest.Options{
		Robots: "User-agent: *\nLicense: https://a.example/l?<&>\n", Handler: func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Signal", `ai-train=no, x="<script>\`+"\x9b"+`"`)
			io.WriteString(rw, originMark)
		},
	}))
	for accept, want := range map[string][]string{
		"text/html": {"<h1>403 Reserved by the publisher</h1>",
			"<dt>Reserved</dt><dd>train-ai=n from content-signal, in the response&#39;s header</dd>", "<dt>Reason</dt><dd>usage</dd>",
			"crawlers[].purposes"},
		"text/plain":       {"403 Reserved by the publisher\n", "Reserved: train-ai=n from content-signal, in the response's header\n", "usage.reserved", "action: allow"},
		"application/json": {`"use": "train-ai",`, `"value": "n",`, `"source": "content-signal",`, `"in": "header"`},
	} {
		resp, body := g.Get(g.HTTP+"/", "Accept", accept)
		proxytest.WantStatus(t, resp, 403)
		proxytest.WantFields(t, resp)
		for _, text := range want {
			if !strings.Contains(body, text) {
				t.Errorf("%s: no %q in\n%s", accept, text, body)
			}
		}
		if strings.Contains(body, "\x9b") || strings.Contains(body, originMark) || accept == "text/html" && strings.Contains(body, "<script>") {
			t.Errorf("%s: unsafe text in\n%q", accept, body)
		}
	}
}

// TestLicensesInJSON: the licences of a refusal are an array, one in a line.
func TestLicensesInJSON(t *testing.T) {
	g := proxytest.Start(t, trains(proxytest.Options{Robots: "User-agent: *\nContent-Usage: train-ai=n\nLicense: https://a.example/1\nLicense: https://a.example/2\n"}))
	_, body := g.Get(g.HTTP + "/")
	for _, want := range []string{"  \"licenses\": [\n    \"https://a.example/1\",\n    \"https://a.example/2\"\n  ],\n", "\"line\": 2\n"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in\n%s", want, body)
		}
	}
}

// TestUsageOfTunnel: a passthrough tunnel is refused by what robots.txt states for /, and the answer has
// the annotations.
func TestUsageOfTunnel(t *testing.T) {
	for usageLine, want := range map[string]string{"Content-Usage: train-ai=n": "403", "Content-Usage: /x train-ai=n": "200", "Content-Usage: search=n": "200"} {
		g := proxytest.Start(t, trains(proxytest.Options{Proxy: proxytest.PassThrough, Robots: "User-agent: *\n" + usageLine + "\n"}))
		target := proxytest.Host(g.HTTPS)
		answer := g.Raw("CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\nUser-Agent: ExampleBot\r\nConnection: close\r\n\r\n")
		if proxytest.StatusOf(answer) != want || want == "403" && !strings.Contains(answer, "Robots-Gate-Usage: train-ai;v=n;src=content-usage;in=robots;line=2\r\n") {
			t.Errorf("%s: got %q", usageLine, answer)
		}
	}
}

// TestLongUsage: a robots.txt of many statements does not make the header longer than clients accept, and
// no reservation is left out of it.
func TestLongUsage(t *testing.T) {
	var robots strings.Builder
	label := strings.Repeat("x", 60)
	robots.WriteString("User-agent: *\n" + strings.Repeat("Content-Usage: train-ai=y, search=y, "+label+"=y\n", 500) + "Content-Usage: search=n\n")
	for i := range 20 {
		fmt.Fprintf(&robots, "License: https://a.example/%s%d\n", strings.Repeat("x", 1000), i)
	}
	g := proxytest.Start(t, proxytest.Options{Robots: robots.String()})
	resp, _ := g.Get(g.HTTP + "/")
	proxytest.WantHeader(t, resp, "Robots-Gate-Usage", "train-ai;v=y;src=content-usage;in=robots;line=2, search;v=y;src=content-usage;in=robots;line=2, "+
		label+";v=y;src=content-usage;in=robots;line=2, search;v=n;src=content-usage;in=robots;line=502")
	wantUsageFields(t, resp)
	if n := len(resp.Header.Get("Robots-Gate-License")); n < 4000 || n > 6<<10+100 {
		t.Errorf("%d bytes of licences", n)
	}
}

// TestUsageFieldsOfAnything: whatever the categories and URLs are, both fields are valid.
func TestUsageFieldsOfAnything(t *testing.T) {
	odd := []string{"", "train-ai", "*", "a b", "a;v=n", "a,b", "\x00", "ü", "Ab", "a\r\nSet-Cookie: x", strings.Repeat("x", 9000), `"`, "https://a.example/\"\\"}
	for _, a := range odd {
		for _, b := range odd {
			resp := &http.Response{Header: http.Header{}}
			response.Annotate(resp.Header, &response.Signals{Inspection: response.Inspection{Stated: usage.Stated{
				Preferences: []usage.Preference{{Category: a, Source: usage.ContentUsage, In: usage.InHeader},
					{Category: b, Allowed: true, Source: usage.ContentUsage, In: usage.InRobots, Line: 3},
					{Category: "search", Source: usage.TDMRep, In: usage.InMeta}},
				Licenses: []usage.License{{URL: a, Source: usage.RSL, In: usage.InMeta}, {URL: b, Source: usage.RSL, In: usage.InRobots, Line: 1},
					{URL: "https://a.example/", Source: usage.TDMRep, In: usage.InWellKnown}},
			}}})
			wantUsageFields(t, resp)
			if len(a)+len(b) < 1000 && (!strings.HasSuffix(resp.Header.Get("Robots-Gate-Usage"), "search;v=n;src=tdmrep;in=meta") ||
				!strings.HasSuffix(resp.Header.Get("Robots-Gate-License"), `"https://a.example/";src=tdmrep;in=well-known`)) {
				t.Errorf("%q, %q: got %q", a, b, resp.Header)
			}
		}
	}
}

// FuzzWithheld asserts that no byte of a reserved page reaches the client, wherever its reservation stands
// and however the page arrives.
func FuzzWithheld(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, seed%2 == 0)
	}
	f.Fuzz(withheldAtRandom)
}

// withheldAtRandom sends one page in pieces.
func withheldAtRandom(t *testing.T, seed uint64, chunked bool) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	filler := func() string { return strings.Repeat("<!-- "+originMark+" -->", rnd.IntN(200)) }
	page := "<!doctype html><head>" + filler() + `<meta name="robots" content="noai">` + filler() + "</head><body>" + filler() + strings.Repeat(originMark, rnd.IntN(20_000))
	var replies atomic.Uint64 // connections are served at the same time
	o := gatetest.StartLineOrigin(t, gatetest.WithoutRobots(func(_ int, conn net.Conn, _ *http.Request) bool {
		rnd := rand.New(rand.NewPCG(seed, replies.Add(1)))
		framing := "Content-Length: " + strconv.Itoa(len(page))
		if chunked {
			framing = "Transfer-Encoding: chunked\r\nTrailer: X-Origin"
		}
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nSet-Cookie: "+originMark+"\r\nContent-Type: text/html\r\n"+framing+"\r\n\r\n")
		for rest := page; rest != ""; {
			piece := rest[:min(len(rest), 1+rnd.IntN(1+len(rest)/2))]
			rest = rest[len(piece):]
			if chunked {
				piece = fmt.Sprintf("%x\r\n%s\r\n", len(piece), piece)
			}
			if _, err := io.WriteString(conn, piece); err != nil {
				return false
			}
			if rnd.IntN(3) == 0 {
				runtime.Gosched()
			}
		}
		if chunked {
			io.WriteString(conn, "0\r\nX-Origin: "+originMark+"\r\n\r\n")
		}
		return true
	}))
	g := proxytest.Start(t, trains(proxytest.Options{}))
	conn := g.Dial()
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(proxytest.Patience))
	for range 2 { // the second request would see what is left of the first response
		fmt.Fprintf(conn, "GET http://%s/ HTTP/1.1\r\nHost: %s\r\nUser-Agent: ExampleBot\r\n\r\n", o.Host, o.Host)
		var all bytes.Buffer
		resp, err := http.ReadResponse(bufio.NewReaderSize(iotest.OneByteReader(io.TeeReader(conn, &all)), 16), nil)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		if resp.StatusCode != 403 || bytes.Contains(all.Bytes(), []byte(originMark)) {
			t.Fatalf("seed %d: got %q", seed, all.String())
		}
	}
}

// TestWithheldUpload: a client whose upload the origin has answered early with a reserved response receives
// the refusal.
func TestWithheldUpload(t *testing.T) {
	g := proxytest.Start(t, trains(proxytest.Options{Handler: func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Usage", "train-ai=n")
		rw.Header().Set("Connection", "close")
		io.WriteString(rw, originMark)
	}}))
	g.Ways(t, func(t *testing.T, v proxytest.Way) {
		body, end := io.Pipe()
		defer end.Close()
		go func() {
			for range 20 {
				if _, err := end.Write(make([]byte, 10_000)); err != nil {
					return
				}
			}
			end.Close()
		}()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, v.Origin+"/", body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("User-Agent", "ExampleBot/1.0")
		start := time.Now()
		resp, err := v.Client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		proxytest.WantStatus(t, resp, 403)
		if err != nil || bytes.Contains(answer, []byte(originMark)) || time.Since(start) > proxytest.Patience {
			t.Errorf("after %v: %v, %q", time.Since(start), err, answer)
		}
	})
}
