package proxy

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"robotsgate/policy"
	"robotsgate/policy/robotstag"
	"robotsgate/policy/snapshot"
)

// wantFields fails unless all that the gate has added can be read as structured
// fields.
func wantFields(t *testing.T, resp *http.Response) {
	t.Helper()
	for _, name := range []string{headerDecision, headerSource, headerMeta, headerDelay, headerID} {
		if lines := resp.Header[name]; len(lines) > 0 {
			if _, err := httpsfv.UnmarshalItem(lines); err != nil {
				t.Errorf("%s: %q: %v", name, lines, err)
			}
		}
	}
	for _, name := range []string{headerTags, proxyStatus} {
		if lines := resp.Header[name]; len(lines) > 0 {
			if _, err := httpsfv.UnmarshalList(lines); err != nil {
				t.Errorf("%s: %q: %v", name, lines, err)
			}
		}
	}
}

// param returns a parameter of the item in a header.
func param(t *testing.T, resp *http.Response, header, name string) any {
	t.Helper()
	i, err := httpsfv.UnmarshalItem(resp.Header[header])
	if err != nil {
		t.Fatalf("%s: %q: %v", header, resp.Header[header], err)
	}
	v, _ := i.Params.Get(name)
	return v
}

func TestRuleText(t *testing.T) {
	long := "/long/" + strings.Repeat("x", 400)
	// The euro sign's three bytes lie across the 256th.
	cut := "/cut/" + strings.Repeat("x", 256-len("Disallow: /cut/")-1) + "€uro"
	for _, c := range []struct {
		robots, path string
		want         any
	}{
		{"Disallow: /plain", "/plain", "Disallow: /plain"},
		{`Disallow: /"quoted"\`, "/%22quoted%22%5c", `Disallow: /"quoted"\`},
		{"Disallow: /übung", "/%C3%BCbung", httpsfv.DisplayString("Disallow: /übung")},
		{"Disallow: /100%25-ü", "/100%25-%C3%BC", httpsfv.DisplayString("Disallow: /100%25-ü")},
		{"Disallow: /\x1b[0m", "/%1b[0m", httpsfv.DisplayString("Disallow: /\x1b[0m")},
		{"Disallow: /\xff\xfe", "/%ff%fe", httpsfv.DisplayString("Disallow: /\uFFFD")},
		{"Disallow: " + long, long, ("Disallow: " + long)[:256]},
		{"Disallow: " + cut, strings.ReplaceAll(cut, "€", "%e2%82%ac"), "Disallow: " + cut[:256-len("Disallow: ")-1]},
	} {
		w := newWorld(t, options{robots: "User-agent: *\n" + c.robots + "\n"})
		resp, _ := w.get(w.http + c.path)
		wantStatus(t, resp, 403)
		wantFields(t, resp)
		if got := param(t, resp, headerDecision, "rule"); got != c.want {
			t.Errorf("%q: got %#v, want %#v", c.robots, got, c.want)
		}
		if line := param(t, resp, headerDecision, "line"); line != int64(2) {
			t.Errorf("%q: line %v", c.robots, line)
		}
	}
}

func TestTagValues(t *testing.T) {
	var lines []string
	w := newWorld(t, options{handler: func(rw http.ResponseWriter, r *http.Request) {
		rw.Header()["X-Robots-Tag"] = lines
	}})
	for _, c := range []struct {
		lines []string
		want  string
	}{
		{nil, ""},
		{[]string{"all"}, ""},
		{[]string{"none"}, `noindex;src=x-robots-tag;scope="*", nofollow;src=x-robots-tag;scope="*"`},
		{[]string{"unavailable_after: 2010-06-25T15:00:00Z"}, `unavailable_after;v=@1277478000;src=x-robots-tag;scope="*"`},
		{[]string{"unavailable_after: 25 Jun 1960 00:00:00 GMT"}, `unavailable_after;v=@-300412800;src=x-robots-tag;scope="*"`},
		{[]string{"unavailable_after: 9999-12-31T23:59:59Z"}, `unavailable_after;v=@253402300799;src=x-robots-tag;scope="*"`},
		{[]string{"unavailable_after: 1970-01-01T00:00:00Z, noindex"}, `unavailable_after;v=@0;src=x-robots-tag;scope="*", noindex;src=x-robots-tag;scope="*"`},
		{[]string{"max-snippet: 20, max-video-preview: -1, max-image-preview: large"},
			`max-snippet;v=20;src=x-robots-tag;scope="*", max-video-preview;v=-1;src=x-robots-tag;scope="*", max-image-preview;v=large;src=x-robots-tag;scope="*"`},
		{[]string{"max-snippet: 99999999999999999999"}, `max-snippet;v=999999999999999;src=x-robots-tag;scope="*"`},
		{[]string{"examplebot: noindex", "otherbot: noarchive", "EXAMPLEBOT: nofollow"}, `noindex;src=x-robots-tag;scope="examplebot", nofollow;src=x-robots-tag;scope="EXAMPLEBOT"`},
	} {
		lines = c.lines
		resp, _ := w.get(w.http + "/")
		wantFields(t, resp)
		if got := resp.Header.Get(headerTags); got != c.want {
			t.Errorf("%q: got %s, want %s", c.lines, got, c.want)
		}
		if got := resp.Header["X-Robots-Tag"]; !slices.Equal(got, c.lines) {
			t.Errorf("the origin's own: got %q, want %q", got, c.lines)
		}
	}
}

func TestSourceOfCutRobots(t *testing.T) {
	w := newWorld(t, options{robots: exampleRobots + "# " + strings.Repeat("x", 1000) + "\nDisallow: /late/\n", engine: func(c *policy.Config) { c.Robots.MaxBytes = 1000 }})
	w.ways(t, func(t *testing.T, v way) {
		resp, _ := v.get(t, "/late/")
		wantStatus(t, resp, 200)
		wantFields(t, resp)
		if param(t, resp, headerSource, "truncated") != true {
			t.Errorf("not marked: %s", resp.Header.Get(headerSource))
		}
	})
}

func TestDelay(t *testing.T) {
	for delay, want := range map[string]string{"10": "10.0;line=2", "0.5": "0.5;line=2", "1e9": "", "-1": "", "x": "", "0.0001": "0.0;line=2", "999999999999999999": ""} {
		w := newWorld(t, options{robots: "User-agent: *\nCrawl-delay: " + delay + "\nDisallow: /private/\n"})
		for path := range strings.FieldsSeq("/ /private/") {
			resp, _ := w.get(w.http + path)
			wantFields(t, resp)
			if got := resp.Header.Get(headerDelay); got != want {
				t.Errorf("Crawl-delay: %s: got %q, want %q", delay, got, want)
			}
		}
	}
}

// TestStatusDetails: text of any kind can stand in Proxy-Status.
func TestStatusDetails(t *testing.T) {
	h := http.Header{}
	setStatus(h, "e", "ünprintable\n\x00\"\\"+strings.Repeat("x", 400))
	if list, err := httpsfv.UnmarshalList(h[proxyStatus]); err != nil || len(h.Get(proxyStatus)) > 320 {
		t.Errorf("%v, %v", list, err)
	}
}

// An origin's headers can't be mistaken for the gate's, in any spelling.
func TestForgedHeaders(t *testing.T) {
	forged := []string{"Robots-Gate-Decision", "ROBOTS-GATE-TAGS", "robots-gate-meta", "Robots-Gate-Delay", "Robots-Gate-Id", "Robots-Gate-Source", "Robots-Gate-Anything", "Robots-Gate-"}
	w := newWorld(t, options{robots: "# no rules\n", handler: func(rw http.ResponseWriter, r *http.Request) {
		for name := range r.Header {
			if strings.Contains(strings.ToLower(name), "robots-gate") {
				t.Errorf("the origin received %s", name)
			}
		}
		for _, name := range forged {
			rw.Header()[name] = []string{"forged", "forged"}
		}
		rw.Header().Set("Proxy-Status", `cdn; error="`)
		io.WriteString(rw, "x")
	}})
	w.ways(t, func(t *testing.T, v way) {
		var headers []string
		for _, name := range forged {
			headers = append(headers, name, "forged")
		}
		resp, _ := v.get(t, "/", headers...)
		wantStatus(t, resp, 200)
		wantFields(t, resp)
		for name, values := range resp.Header {
			if strings.Contains(strings.Join(values, " "), "forged") {
				t.Errorf("%s: %q", name, values)
			}
		}
		wantHeader(t, resp, proxyStatus, "")
		wantHeader(t, resp, headerDecision, "allow;reason=no-group")
	})
}

func BenchmarkAnnotate(b *testing.B) {
	x := &signals{ID: "ABCDEFGHIJKLMNOPQRSTUVWXYZ", inspection: inspection{Head: Head{State: "complete", Bytes: 3500},
		Tags: []robotstag.Rule{{Name: "max-snippet", Value: "20", Source: "meta", Scope: "robots"}, {Name: "noarchive", Source: "meta", Scope: "robots"}}},
		Decision: &policy.Decision{Allow: true, Reason: policy.ByRule, Token: "ExampleBot", RobotsURL: "https://www.example.com/robots.txt",
			Robots: &snapshot.Resolution{State: snapshot.Fresh, Age: time.Minute, Snapshot: &snapshot.Snapshot{Status: 200, SHA256: strings.Repeat("ab", 32)}}},
	}
	h := http.Header{}
	b.ReportAllocs()
	for b.Loop() {
		annotate(h, x)
	}
}
