package proxy_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/dunglas/httpsfv"
	"github.com/klauspost/compress/zstd"

	"robotsgate/internal/gatetest"
	"robotsgate/internal/record"
	"robotsgate/policy"
	"robotsgate/policy/glob"
	"robotsgate/policy/usage"
	"robotsgate/proxy"
	"robotsgate/proxy/internal/proxytest"
)

// A usageCase is one request, and what is stated of the use of its URL.
type usageCase struct {
	name string

	purposes string // of the crawler, with commas
	level    string // of the crawler
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

const originMark = "ORIGIN" // in every body of the origin, and in its fields

// readUsageCases returns the cases of testdata/usage. Their keys are the names of the fields, but for html, which may be
// off, and padding, the length of what follows page in the head.
func readUsageCases(t *testing.T) (cases []usageCase) {
	gatetest.EachCase(t, "usage/*.txtar", func(name string) func(key, value string) bool {
		cases = append(cases, usageCase{name: name})
		return func(key, value string) bool { return cases[len(cases)-1].set(key, value) }
	})
	return cases
}

func (c *usageCase) set(key, value string) bool {
	texts := map[string]*string{
		"purposes": &c.purposes, "level": &c.level, "method": &c.method, "path": &c.path, "send": &c.send, "page": &c.page, "raw": &c.raw, "coding": &c.coding,
		"decision": &c.decision, "usage": &c.usage, "license": &c.license, "meta": &c.meta, "text": &c.text, "sent": &c.sent,
	}
	lines := map[string]*string{"robots": &c.robots, "header": &c.header}
	flags := map[string]*bool{"annotate": &c.annotate, "unread": &c.unread, "report": &c.report, "allow": &c.allow}
	padding := 0
	numbers := map[string]*int{"status": &c.status, "answer": &c.answer, "want": &c.want, "padding": &padding}
	var err error
	switch {
	case texts[key] != nil:
		*texts[key] = value
	case lines[key] != nil:
		*lines[key] += value + "\n"
	case flags[key] != nil && value == "yes":
		*flags[key] = true
	case key == "html" && value == "off":
		c.htmlOff = true
	case numbers[key] != nil:
		*numbers[key], err = strconv.Atoi(value)
		c.page += strings.Repeat("x", padding)
	default:
		return false
	}
	return err == nil
}

// startUsage starts a gate and an origin for a case.
func startUsage(t *testing.T, c usageCase) *proxytest.Gate {
	t.Helper()
	crawler := &policy.Crawler{Name: "default", DenyStatus: c.status, ContentUse: usage.Level(c.level)}
	for p := range strings.SplitSeq(c.purposes, ",") {
		if p != "" {
			crawler.Purposes = append(crawler.Purposes, usage.Purpose(p))
		}
	}
	if c.report {
		crawler.Mode = policy.Report
	}
	return proxytest.Start(t, proxytest.Options{
		Robots:  "User-agent: *\n" + c.robots,
		Handler: c.serve,
		Engine: func(p *policy.Config) {
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
		Proxy: func(o *proxy.Options) {
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
	for _, c := range readUsageCases(t) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := startUsage(t, c)
			g.Ways(t, func(t *testing.T, v proxytest.Way) {
				path := cmp.Or(c.path, "/x")
				before := len(g.Arrived())
				var headers []string
				if name, value, ok := strings.Cut(c.send, ": "); ok {
					headers = []string{name, value}
				}
				resp, body := proxytest.Send(t, v.Client, cmp.Or(c.method, http.MethodGet), v.Origin+path, nil, headers...)
				x := g.Next(t)
				if sent := len(g.Arrived()) > before; sent == (c.sent == "no") {
					t.Errorf("sent: %v", sent)
				}
				proxytest.WantStatus(t, resp, c.want)
				proxytest.WantHeader(t, resp, "Robots-Gate-Decision", cmp.Or(c.decision, "allow"))
				if strings.HasSuffix(resp.Header.Get("Robots-Gate-Decision"), "enforced=?0") != strings.HasSuffix(c.decision, "enforced=?0") {
					t.Errorf("got %s", resp.Header.Get("Robots-Gate-Decision"))
				}
				if c.usage != "" || c.want < 400 && c.decision == "" {
					proxytest.WantHeader(t, resp, "Robots-Gate-Usage", c.usage)
				}
				if c.license != "" || c.want < 400 {
					proxytest.WantHeader(t, resp, "Robots-Gate-License", c.license)
				}
				if c.meta != "" {
					proxytest.WantHeader(t, resp, "Robots-Gate-Meta", c.meta)
				}
				proxytest.WantFields(t, resp)
				if strings.HasPrefix(c.decision, "deny;reason=usage") && x.Kind() != record.Refusal(policy.ByUsage) || x.Cause == "usage" {
					t.Errorf("the record has the kind %q, the cause %q", x.Kind(), x.Cause)
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
		proxytest.WantHeader(t, resp, name, "")
	}
	if len(resp.Trailer) > 0 {
		t.Errorf("trailers: %v", resp.Trailer)
	}
	proxytest.WantHeader(t, resp, "Content-Type", "application/problem+json")
	proxytest.WantHeader(t, resp, "Cache-Control", "no-store")
	proxytest.WantHeader(t, resp, "Proxy-Status", "robotsgate;error=http_request_denied;details=")
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
		"Robots-Gate-Usage":   func(v any) bool { _, ok := v.(httpsfv.Token); return ok },
		"Robots-Gate-License": func(v any) bool { _, ok := v.(string); return ok },
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
