package proxy

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/dunglas/httpsfv"
	"github.com/klauspost/compress/zstd"

	"robotsgate/policy"
	"robotsgate/policy/glob"
	"robotsgate/policy/usage"
)

// A usageCase is one request, and what is stated of the use of its URL.
type usageCase struct {
	name string

	purposes string // of the crawler, with commas
	annotate bool   // nothing is refused
	unread   bool   // pages whose head was not read whole are refused
	htmlOff  bool   // no page is read
	report   bool   // the crawler is in report mode
	allow    bool   // an override allows the request
	status   int    // of a refusal of this crawler

	robots string // the group's lines
	method string
	path   string
	send   string // a header line of the request

	answer int    // status of the response; 0: 200
	header string // its header lines, separated by line feeds
	page   string // in its head; the body has more
	raw    string // the body, in place of a page
	coding string

	want     int
	decision string // how the header begins; from reason on
	usage    string
	license  string
	meta     string
	text     string // in the body of a refusal
	sent     string // "no": the request was not sent
}

const (
	unreadPage     = `deny;reason=usage;token="ExampleBot";group="*";unread`
	xhtmlPage      = `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><meta name="robots" content="noai"/></head><body/></html>`
	refusedByUsage = `deny;reason=usage;token="ExampleBot";group="*";use=`
	originMark     = "ORIGIN" // in every body of the origin, and in its fields
)

var usageCases = []usageCase{
	// What is stated is annotated.
	{name: "nothing", want: 200, decision: "allow;reason=no-match"},
	{name: "robots.txt", robots: "Content-Usage: train-ai=n, search=y", want: 200, usage: "train-ai;v=n;src=content-usage;in=robots;line=2, search;v=y;src=content-usage;in=robots;line=2"},
	{name: "Content-Signal", robots: "Content-Signal: ai-train=no", want: 200, usage: "train-ai;v=n;src=content-signal;in=robots;line=2"},
	{name: "a licence", robots: "License: https://a.example/l.xml", want: 200, license: `"https://a.example/l.xml";src=rsl;in=robots;line=2`},
	{name: "header", header: "Content-Usage: train-ai=n, search=y", want: 200, usage: "train-ai;v=n;src=content-usage;in=header, search;v=y;src=content-usage;in=header"},
	{name: "two lines of a header", header: "Content-Usage: train-ai=n\nContent-Usage: train-ai=y", want: 200, usage: "train-ai;v=y;src=content-usage;in=header"},
	{name: "a header that Connection names", header: "Connection: Content-Usage\nContent-Usage: train-ai=n", want: 200, usage: "train-ai;v=n;src=content-usage;in=header"},
	{name: "Content-Signal header", header: "Content-Signal: search=yes, ai-train=no", want: 200, usage: "search;v=y;src=content-signal;in=header, train-ai;v=n;src=content-signal;in=header"},
	{name: "TDM header", header: "tdm-reservation: 1\ntdm-policy: https://a.example/p", want: 200, usage: "tdm;v=n;src=tdmrep;in=header", license: `"https://a.example/p";src=tdmrep;in=header`},
	{name: "TDM meta", page: `<meta name="TDM-Reservation" content="1"><meta name="tdm-policy" content="https://a.example/p">`, want: 200, usage: "tdm;v=n;src=tdmrep;in=meta", license: `"https://a.example/p";src=tdmrep;in=meta`, meta: "complete"},
	{name: "a meta before the header", header: "tdm-reservation: 1", page: `<meta name="tdm-reservation" content="0">`, want: 200, usage: "tdm;v=y;src=tdmrep;in=meta"},
	{name: "noai header", header: "X-Robots-Tag: noai", want: 200, usage: "train-ai;v=n;src=robots-tag;in=header"},
	{name: "noai for another crawler", header: "X-Robots-Tag: otherbot: noai", want: 200},
	{name: "noai meta", page: `<meta name="examplebot" content="noimageai">`, want: 200, usage: "train-ai;v=n;src=robots-tag;in=meta"},
	{name: "a Link header", header: `Link: <https://a.example/l>; rel=license; type="application/rsl+xml"`, want: 200, license: `"https://a.example/l";src=rsl;in=header`},
	{name: "another Link header", header: "Link: </a.css>; rel=stylesheet", want: 200},
	{name: "a link element", page: `<link rel="license" type="application/rsl+xml" href="https://a.example/l">`, want: 200, license: `"https://a.example/l";src=rsl;in=meta`},
	{name: "any label", header: "Content-Usage: *=n, a.b-c_d*1=y", want: 200, usage: "*;v=n;src=content-usage;in=header, a.b-c_d*1;v=y;src=content-usage;in=header"},
	{name: "a field that is not valid", header: "Content-Usage: train-ai=n,", want: 200},
	{name: "forged annotations", header: "Robots-Gate-Usage: search;v=y\nRobots-Gate-License: \"x\"", want: 200},
	{name: "all places", robots: "Content-Usage: search=y\nLicense: https://a.example/1", header: "Content-Usage: search=n\nLink: <https://a.example/2>; rel=license; type=application/rsl+xml", page: `<meta name="robots" content="noml">`, want: 200,
		usage:   "search;v=y;src=content-usage;in=robots;line=2, search;v=n;src=content-usage;in=header, train-ai;v=n;src=robots-tag;in=meta",
		license: `"https://a.example/1";src=rsl;in=robots;line=3, "https://a.example/2";src=rsl;in=header`},
	{name: "a page that is not read", htmlOff: true, header: "Content-Usage: search=n", page: `<meta name="robots" content="noml">`, want: 200, usage: "search;v=n;src=content-usage;in=header", meta: "skipped;why=off"},
	{name: "a denied URL", robots: "Disallow: /x\nContent-Usage: train-ai=n\nLicense: https://a.example/l", want: 403, decision: `deny;reason=rule`, license: `"https://a.example/l";src=rsl;in=robots;line=4`, sent: "no"},
	{name: "robots.txt itself", path: "/robots.txt", purposes: "train-ai", robots: "Content-Usage: train-ai=n", want: 200, decision: "allow;reason=implicit", usage: "train-ai;v=n;src=content-usage;in=robots;line=2", sent: "no"},

	// Refused before anything is sent.
	{name: "refused by robots.txt", purposes: "train-ai", robots: "Content-Usage: train-ai=n", want: 403, decision: refusedByUsage + "train-ai;src=content-usage;in=robots;line=2", usage: "train-ai;v=n", text: `says \"Content-Usage: train-ai=n\", in the group for *.`, sent: "no"},
	{name: "by Content-Signal, with 451", purposes: "tdm,ai-input", status: 451, robots: "Content-signal : search=yes,ai-input=no # why", want: 451, decision: refusedByUsage + "ai-input;src=content-signal;in=robots;line=2", text: `"text": "Content-signal: search=yes,ai-input=no"`, sent: "no"},
	{name: "another purpose", purposes: "search", robots: "Content-Usage: train-ai=n", want: 200, decision: "allow;reason=no-match", usage: "train-ai;v=n"},
	{name: "no purpose", robots: "Content-Usage: train-ai=n", header: "Content-Usage: search=n", want: 200, decision: "allow;reason=no-match"},
	{name: "only annotated", annotate: true, purposes: "train-ai", robots: "Content-Usage: train-ai=n", header: "Content-Usage: train-ai=n", want: 200, decision: "allow;reason=no-match"},
	{name: "report mode, robots.txt", report: true, purposes: "train-ai", robots: "Content-Usage: train-ai=n", want: 200, decision: refusedByUsage + "train-ai;src=content-usage;in=robots;line=2;enforced=?0"},

	// Refused when the response arrives.
	{name: "refused by the header", purposes: "train-ai", header: "Content-Usage: train-ai=n", want: 403, decision: refusedByUsage + "train-ai;src=content-usage;in=header", usage: "train-ai;v=n;src=content-usage;in=header", meta: "complete", text: `A field of the response says \"Content-Usage: train-ai=n\".`},
	{name: "by Content-Signal", purposes: "search,ai-input", header: "Content-Signal: ai-input=no", want: 403, decision: refusedByUsage + "ai-input;src=content-signal;in=header", text: `"purpose": "ai-input"`},
	{name: "by TDM", purposes: "train-ai", header: "tdm-reservation: 1\ntdm-policy: https://a.example/p", want: 403, decision: refusedByUsage + "tdm;src=tdmrep;in=header", license: `"https://a.example/p"`, text: "For a licence see https://a.example/p;"},
	{name: "TDM is not about search", purposes: "search", header: "tdm-reservation: 1", want: 200, decision: "allow;reason=no-match"},
	{name: "by noai", purposes: "train-ai", header: "X-Robots-Tag: noai", want: 403, decision: refusedByUsage + "train-ai;src=robots-tag;in=header", text: `"X-Robots-Tag: noai\"`},
	{name: "by the page", purposes: "train-ai", page: `<meta name="robots" content="noai">`, want: 403, decision: refusedByUsage + "train-ai;src=robots-tag;in=meta", meta: "complete", text: `The head of the page says \"<meta name=robots content=noai>\".`},
	{name: "by the page's TDM", purposes: "tdm", page: `<meta name="tdm-reservation" content="1">`, want: 403, decision: refusedByUsage + "tdm;src=tdmrep;in=meta", text: `tdm-reservation: 1`},
	{name: "lifted by the page", purposes: "tdm", header: "tdm-reservation: 1", page: `<meta name="tdm-reservation" content="0">`, want: 200, decision: "allow;reason=no-match", usage: "tdm;v=y;src=tdmrep;in=meta"},
	{name: "n wins over y", purposes: "search", robots: "Content-Usage: search=y", header: "Content-Usage: search=n", want: 403, decision: refusedByUsage + "search;src=content-usage;in=header"},
	{name: "a licence refuses nothing", purposes: "train-ai,ai-input,search,tdm", header: `Link: <https://a.example/l>; rel=license; type="application/rsl+xml"`, want: 200, decision: "allow;reason=no-match", license: `"https://a.example/l";src=rsl;in=header`},
	{name: "another label refuses nothing", purposes: "train-ai,ai-input,search,tdm", header: "Content-Usage: *=n, bots=n", want: 200, decision: "allow;reason=no-match"},
	{name: "451", status: 451, purposes: "search", header: "Content-Usage: search=n", want: 451, decision: refusedByUsage + "search"},
	{name: "report mode", report: true, purposes: "search", header: "Content-Usage: search=n", want: 200, decision: refusedByUsage + "search;src=content-usage;in=header;enforced=?0"},
	{name: "report mode, the page", report: true, purposes: "train-ai", page: `<meta name="robots" content="noai">`, want: 200, decision: refusedByUsage + "train-ai;src=robots-tag;in=meta;enforced=?0"},
	{name: "report mode, denied by a rule", report: true, purposes: "train-ai", robots: "Disallow: /x", header: "Content-Usage: train-ai=n", want: 200, decision: `deny;reason=rule`, usage: "train-ai;v=n;src=content-usage;in=header"},
	{name: "an override", allow: true, purposes: "train-ai", header: "Content-Usage: train-ai=n", page: `<meta name="robots" content="noai">`, want: 200, decision: "allow;reason=override", usage: "train-ai;v=n;src=content-usage;in=header, train-ai;v=n;src=robots-tag;in=meta"},
	{name: "no robots.txt rules", purposes: "search", robots: "#", header: "Content-Usage: search=n", want: 403, decision: `deny;reason=usage;token="ExampleBot";group="*";use=search`},
	{name: "html off, by the page", htmlOff: true, purposes: "train-ai", page: `<meta name="robots" content="noai">`, want: 200, decision: "allow;reason=no-match", meta: "skipped;why=off"},
	{name: "not a page", purposes: "train-ai", header: "Content-Type: image/png\nX-Robots-Tag: noimageai", raw: "PNG", want: 403, decision: refusedByUsage + "train-ai", meta: "skipped;why=type", text: "X-Robots-Tag: noimageai"},

	{name: "a page by its second Content-Type", purposes: "train-ai", header: "Content-Type: text/plain\nContent-Type: text/html", page: `<meta name="robots" content="noai">`, want: 403, decision: refusedByUsage + "train-ai", meta: "complete"},

	// Whatever kind of response it is.
	{name: "gzip", purposes: "train-ai", page: `<meta name="robots" content="noai">`, coding: "gzip", want: 403, decision: refusedByUsage + "train-ai", meta: "complete"},
	{name: "br", purposes: "train-ai", page: `<meta name="robots" content="noai">`, coding: "br", want: 403, decision: refusedByUsage + "train-ai", meta: "complete"},
	{name: "zstd", purposes: "train-ai", page: `<meta name="robots" content="noai">`, coding: "zstd", want: 403, decision: refusedByUsage + "train-ai", meta: "complete"},
	{name: "gzip, by the header", purposes: "train-ai", header: "Content-Usage: train-ai=n", coding: "gzip", want: 403, decision: refusedByUsage + "train-ai"},
	{name: "302", purposes: "train-ai", answer: 302, header: "Location: /" + originMark + "\nContent-Usage: train-ai=n", want: 403, decision: refusedByUsage + "train-ai"},
	{name: "302 without", purposes: "train-ai", answer: 302, header: "Location: /y", want: 302, decision: "allow;reason=no-match"},
	{name: "404", purposes: "train-ai", answer: 404, header: "Content-Usage: train-ai=n", want: 403, decision: refusedByUsage + "train-ai"},
	{name: "500, by the page", purposes: "train-ai", answer: 500, page: `<meta name="robots" content="noai">`, want: 403, decision: refusedByUsage + "train-ai"},
	{name: "204", purposes: "train-ai", answer: 204, header: "Content-Usage: train-ai=n", want: 403, decision: refusedByUsage + "train-ai", meta: "skipped;why=status"},
	{name: "206", purposes: "train-ai", answer: 206, header: "Content-Usage: train-ai=n", want: 403, decision: refusedByUsage + "train-ai", meta: "skipped;why=status"},
	{name: "206 of a page", purposes: "train-ai", answer: 206, page: `<meta name="robots" content="noai">`, want: 206, decision: "allow;reason=no-match", meta: "skipped;why=status"},
	{name: "304", purposes: "train-ai", answer: 304, header: "Content-Usage: train-ai=n\nETag: \"ORIGIN\"", want: 403, decision: refusedByUsage + "train-ai", meta: "skipped;why=status"},
	{name: "HEAD", method: "HEAD", purposes: "train-ai", header: "Content-Usage: train-ai=n", want: 403, decision: refusedByUsage + "train-ai", meta: "skipped;why=method"},
	{name: "HEAD of a page", method: "HEAD", purposes: "train-ai", page: `<meta name="robots" content="noai">`, want: 200, decision: "allow;reason=no-match", meta: "skipped;why=method"},
	{name: "POST", method: "POST", purposes: "train-ai", header: "Content-Usage: train-ai=n", want: 403, decision: refusedByUsage + "train-ai"},
	{name: "a trailer does not count", purposes: "train-ai", header: "Trailer: Content-Usage", want: 200, decision: "allow;reason=no-match"},
	{name: "a request's field does not count", purposes: "train-ai", send: "Content-Usage: train-ai=n", want: 200, decision: "allow;reason=no-match"},

	// A head that cannot be read whole.
	{name: "unread pages pass", purposes: "train-ai", header: "Content-Encoding: odd", page: `<meta name="robots" content="noai">`, want: 200, decision: "allow;reason=no-match", meta: "partial;why=encoding"},
	{name: "unread pages are refused", unread: true, purposes: "train-ai", header: "Content-Encoding: odd", page: `<meta name="robots" content="noai">`, want: 403, decision: `deny;reason=usage;token="ExampleBot";group="*";unread`, meta: "partial;why=encoding", text: "(its encoding can't be read): it may reserve what this crawler fetches for (crawlers[].purposes), and the gate refuses such pages (usage.unread). Its operator can let such pages pass.\""},
	{name: "a head that is too long", unread: true, purposes: "search", page: "<script>" + strings.Repeat("x", 200<<10), want: 403, decision: `deny;reason=usage;token="ExampleBot";group="*";unread`, meta: "partial;why=limit", text: "Its operator can raise tags.max_head_bytes, or let such pages pass.\""},
	{name: "a head that is too long passes", purposes: "search", page: "<script>" + strings.Repeat("x", 200<<10), want: 200, decision: "allow;reason=no-match", meta: "partial;why=limit"},
	{name: "what of it was read counts", purposes: "train-ai", page: `<meta name="robots" content="noai"><script>` + strings.Repeat("x", 200<<10), want: 403, decision: refusedByUsage + "train-ai;src=robots-tag;in=meta", meta: "partial;why=limit"},
	{name: "unread, without purposes", unread: true, header: "Content-Encoding: odd", want: 200, decision: "allow;reason=no-match"},
	{name: "unread, an override", unread: true, allow: true, purposes: "search", header: "Content-Encoding: odd", want: 200, decision: "allow;reason=override"},
	{name: "unread, report mode", unread: true, report: true, purposes: "search", header: "Content-Encoding: odd", want: 200, decision: `deny;reason=usage;token="ExampleBot";group="*";unread;enforced=?0`},
	{name: "a page that is read passes", unread: true, purposes: "search", want: 200, decision: "allow;reason=no-match", meta: "complete"},
	{name: "unread, not a page", unread: true, purposes: "search", header: "Content-Type: image/png\nContent-Encoding: odd", raw: "PNG", want: 200, decision: "allow;reason=no-match"},
	{name: "a part of a page", unread: true, purposes: "search", answer: 206, want: 403, decision: `deny;reason=usage;token="ExampleBot";group="*";unread`, text: "Its operator can let such pages pass. A request for the whole page reads its head.\""},
	{name: "differences to an earlier page", unread: true, purposes: "search", answer: 226, header: "IM: diffe", want: 403, decision: unreadPage, meta: "skipped;why=status"},
	{name: "parts of what may be a page", unread: true, purposes: "search", answer: 206, header: "Content-Type: multipart/byteranges; boundary=x", want: 403, decision: `deny;reason=usage;token="ExampleBot";group="*";unread`},
	{name: "a part without a type", unread: true, purposes: "search", answer: 206, header: "Content-Type: absent", want: 403, decision: unreadPage},
	{name: "a page, type empty", unread: true, purposes: "train-ai", header: "Content-Type: ", page: `<meta name="robots" content="noai">`, want: 403, decision: refusedByUsage + "train-ai;src=robots-tag;in=meta", meta: "complete"},
	{name: "a page, no type", unread: true, purposes: "train-ai", header: "Content-Type: absent", page: `<meta name="robots" content="noai">`, want: 403, decision: refusedByUsage + "train-ai;src=robots-tag;in=meta", meta: "complete"},
	{name: "a page, type any", unread: true, purposes: "train-ai", header: "Content-Type: */*", page: `<meta name="robots" content="noai">`, want: 403, decision: refusedByUsage + "train-ai;src=robots-tag;in=meta", meta: "complete"},
	{name: "a page, type unknown", unread: true, purposes: "train-ai", header: "Content-Type: unknown/unknown", page: `<meta name="robots" content="noai">`, want: 403, decision: refusedByUsage + "train-ai;src=robots-tag;in=meta", meta: "complete"},
	{name: "a page, type application/unknown", unread: true, purposes: "train-ai", header: "Content-Type: application/unknown", page: `<meta name="robots" content="noai">`, want: 403, decision: refusedByUsage + "train-ai;src=robots-tag;in=meta", meta: "complete"},
	{name: "a page, type no subtype", unread: true, purposes: "train-ai", header: "Content-Type: text", page: `<meta name="robots" content="noai">`, want: 403, decision: refusedByUsage + "train-ai;src=robots-tag;in=meta", meta: "complete"},
	{name: "a page, type joined", unread: true, purposes: "train-ai", header: "Content-Type: text/plain, text/html", page: `<meta name="robots" content="noai">`, want: 403, decision: refusedByUsage + "train-ai;src=robots-tag;in=meta", meta: "complete"},
	{name: "a page without a type, in gzip", unread: true, purposes: "train-ai", header: "Content-Type: ", coding: "gzip", page: `<meta name="robots" content="noai">`, want: 403, decision: refusedByUsage + "train-ai;src=robots-tag;in=meta", meta: "complete"},
	{name: "a page without a type that is read passes", unread: true, purposes: "search", header: "Content-Type: ", want: 200, decision: "allow;reason=no-match", meta: "complete"},
	{name: "XHTML as XML", unread: true, purposes: "train-ai", header: "Content-Type: application/xml", raw: xhtmlPage, want: 403, decision: refusedByUsage + "train-ai;src=robots-tag;in=meta", meta: "complete"},
	{name: "XHTML as a kind of XML", unread: true, purposes: "train-ai", header: "Content-Type: application/x+xml", raw: xhtmlPage, want: 403, decision: refusedByUsage + "train-ai;src=robots-tag;in=meta", meta: "complete"},
	{name: "other XML", unread: true, purposes: "train-ai", header: "Content-Type: application/xml", raw: "<?xml version='1.0'?><urlset><url/></urlset>", want: 200, decision: "allow;reason=no-match", meta: "skipped;why=type"},
	{name: "text without a type", unread: true, purposes: "search", header: "Content-Type: ", raw: "text", want: 403, decision: unreadPage, meta: "skipped;why=type", text: "does not begin as a page does"},
	{name: "text without a type passes", purposes: "search", header: "Content-Type: ", raw: "text", want: 200, decision: "allow;reason=no-match", meta: "skipped;why=type"},
	{name: "an image without a type", unread: true, purposes: "search", header: "Content-Type: ", raw: "\x89PNG\x0d\x0a\x1a\x0a", want: 200, decision: "allow;reason=no-match", meta: "skipped;why=type"},
	{name: "a part of an image", unread: true, purposes: "search", answer: 206, header: "Content-Type: image/png", raw: "PNG", want: 206, decision: "allow;reason=no-match"},
}

// newUsageWorld starts a gate and an origin for a case.
func newUsageWorld(t *testing.T, c usageCase) *world {
	t.Helper()
	crawler := &policy.Crawler{Name: "default", DenyStatus: c.status}
	for p := range strings.SplitSeq(c.purposes, ",") {
		if p != "" {
			crawler.Purposes = append(crawler.Purposes, usage.Purpose(p))
		}
	}
	if c.report {
		crawler.Mode = policy.Report
	}
	return newWorld(t, options{
		robots:  "User-agent: *\n" + c.robots + "\n",
		handler: c.serve,
		engine: func(p *policy.Config) {
			p.Crawlers.Default = crawler
			if !c.annotate {
				p.Usage.Reserved = policy.RefuseReserved
			}
			if c.unread {
				p.Usage.Unread = policy.RefuseUnread
			}
			if c.allow {
				p.Overrides = []policy.Override{{Hosts: []glob.Glob{glob.Text("*")}, Action: policy.Allow, Reason: "contract"}}
			}
		},
		gate: func(o *Options) {
			o.Settings.Tags.HTML, o.Settings.Tags.MaxHeadBytes = !c.htmlOff, 100<<10
		},
	})
}

// serve answers as the origin.
func (c usageCase) serve(rw http.ResponseWriter, r *http.Request) {
	h := rw.Header()
	if !strings.Contains(c.header, "Content-Type: ") {
		h.Set("Content-Type", "text/html")
	}
	h.Set("Set-Cookie", originMark)
	h.Set("X-Origin", originMark)
	for line := range strings.SplitSeq(c.header, "\n") {
		if name, value, ok := strings.Cut(line, ": "); ok {
			h.Add(name, value)
		}
		if line == "Content-Type: absent" {
			h["Content-Type"] = nil // otherwise net/http would add one
		}
	}
	body := "<!doctype html><html><head><title>" + originMark + "</title>" + c.page + "</head><body>" + originMark + "</body></html>"
	if c.raw != "" {
		body = c.raw + originMark
	}
	if c.coding != "" {
		h.Set("Content-Encoding", c.coding)
		body = encode(c.coding, body)
	}
	rw.WriteHeader(cmp.Or(c.answer, 200))
	if c.answer != http.StatusNoContent && c.answer != http.StatusNotModified && r.Method != http.MethodHead {
		io.WriteString(rw, body)
	}
	if h.Get("Trailer") != "" {
		h.Set("Content-Usage", "train-ai=n")
	}
}

func encode(coding, text string) string {
	var b bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "br":
		w = brotli.NewWriter(&b)
	case "zstd":
		w, _ = zstd.NewWriter(&b)
	}
	io.WriteString(w, text)
	w.Close()
	return b.String()
}

// TestUsage: every response says what is stated of its use, and no part of a reserved one reaches the client.
func TestUsage(t *testing.T) {
	for _, c := range usageCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newUsageWorld(t, c)
			w.ways(t, func(t *testing.T, v way) {
				path := cmp.Or(c.path, "/x")
				before := len(w.arrived())
				var headers []string
				if name, value, ok := strings.Cut(c.send, ": "); ok {
					headers = []string{name, value}
				}
				resp, body := send(t, v.client, cmp.Or(c.method, http.MethodGet), v.origin+path, nil, headers...)
				record := w.next(t)
				if sent := len(w.arrived()) > before; sent == (c.sent == "no") {
					t.Errorf("sent: %v", sent)
				}
				wantStatus(t, resp, c.want)
				wantHeader(t, resp, headerDecision, cmp.Or(c.decision, "allow"))
				if strings.HasSuffix(resp.Header.Get(headerDecision), "enforced=?0") != strings.HasSuffix(c.decision, "enforced=?0") && c.decision != "deny;reason=rule" {
					t.Errorf("got %s", resp.Header.Get(headerDecision))
				}
				if c.usage != "" || c.want < 400 && c.decision == "" {
					wantHeader(t, resp, headerUsage, c.usage)
				}
				if c.license != "" || c.want < 400 {
					wantHeader(t, resp, headerLicense, c.license)
				}
				if c.meta != "" {
					wantHeader(t, resp, headerMeta, c.meta)
				}
				wantFields(t, resp)
				if strings.HasPrefix(c.decision, "deny;reason=usage") && record.Kind() != Refusal(policy.ByUsage) || record.Cause() == "usage" {
					t.Errorf("the record has the kind %q, the cause %q", record.Kind(), record.Cause())
				}
				if c.want != 403 && c.want != 451 {
					if c.path == "" && resp.Header.Get("X-Origin") != originMark {
						t.Error("a field of the origin is missing")
					}
					return
				}
				wantRefusal(t, c, resp, body)
			})
		})
	}
}

// wantRefusal fails unless a refusal has nothing of the origin.
func wantRefusal(t *testing.T, c usageCase, resp *http.Response, body string) {
	t.Helper()
	for name, values := range resp.Header {
		if strings.Contains(strings.Join(values, " "), originMark) {
			t.Errorf("a field of the origin: %s: %q", name, values)
		}
	}
	for _, name := range []string{"Content-Encoding", "Set-Cookie", "Etag", "Location", "Content-Usage", "X-Robots-Tag", "Tdm-Reservation", "Trailer"} {
		wantHeader(t, resp, name, "")
	}
	if len(resp.Trailer) > 0 {
		t.Errorf("trailers: %v", resp.Trailer)
	}
	wantHeader(t, resp, "Content-Type", "application/problem+json")
	wantHeader(t, resp, "Cache-Control", "no-store")
	wantHeader(t, resp, proxyStatus, "robotsgate;error=http_request_denied;details=")
	if c.method == http.MethodHead {
		if body != "" || resp.ContentLength <= 0 {
			t.Errorf("HEAD: %d bytes, the body is %q", resp.ContentLength, body)
		}
		return
	}
	var doc struct{ Type, Reason string }
	if err := json.Unmarshal([]byte(body), &doc); err != nil || resp.ContentLength != int64(len(body)) {
		t.Errorf("Content-Length %d: %v:\n%s", resp.ContentLength, err, body)
	}
	if strings.Contains(c.decision, "reason=usage") && (doc.Type != "urn:robotsgate:usage" || doc.Reason != "usage") {
		t.Errorf("got %+v", doc)
	}
	if strings.Contains(body, originMark) || !strings.Contains(body, c.text) {
		t.Errorf("no %q, or text of the origin, in\n%s", c.text, body)
	}
}

// wantUsageFields fails unless both fields are Lists of Tokens and of Strings.
func wantUsageFields(t *testing.T, resp *http.Response) {
	t.Helper()
	for name, isType := range map[string]func(any) bool{
		headerUsage:   func(v any) bool { _, ok := v.(httpsfv.Token); return ok },
		headerLicense: func(v any) bool { _, ok := v.(string); return ok },
	} {
		list, err := httpsfv.UnmarshalList(resp.Header[name])
		if err != nil && len(resp.Header[name]) > 0 {
			t.Errorf("%s: %q: %v", name, resp.Header[name], err)
		}
		for _, m := range list {
			if item, ok := m.(httpsfv.Item); !ok || !isType(item.Value) {
				t.Errorf("%s: got %v", name, m)
			}
		}
	}
}
