package response_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"

	"robotsgate/policy"
	"robotsgate/proxy/internal/proxytest"
	"robotsgate/proxy/internal/response"
)

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
		g := proxytest.Start(t, proxytest.Options{Robots: "User-agent: *\n" + c.robots + "\n"})
		resp, _ := g.Get(g.HTTP + c.path)
		proxytest.WantStatus(t, resp, 403)
		proxytest.WantFields(t, resp)
		if got := param(t, resp, "Robots-Gate-Decision", "rule"); got != c.want {
			t.Errorf("%q: got %#v, want %#v", c.robots, got, c.want)
		}
		if line := param(t, resp, "Robots-Gate-Decision", "line"); line != int64(2) {
			t.Errorf("%q: line %v", c.robots, line)
		}
	}
}

func TestTagValues(t *testing.T) {
	var lines []string
	g := proxytest.Start(t, proxytest.Options{Handler: func(rw http.ResponseWriter, r *http.Request) {
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
		resp, _ := g.Get(g.HTTP + "/")
		proxytest.WantFields(t, resp)
		if got := resp.Header.Get("Robots-Gate-Tags"); got != c.want {
			t.Errorf("%q: got %s, want %s", c.lines, got, c.want)
		}
		if got := resp.Header["X-Robots-Tag"]; !slices.Equal(got, c.lines) {
			t.Errorf("the origin's own: got %q, want %q", got, c.lines)
		}
	}
}

func TestSourceOfCutRobots(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Robots: proxytest.ExampleRobots + "# " + strings.Repeat("x", 1000) + "\nDisallow: /late/\n", Engine: func(c *policy.Config) { c.Robots.MaxBytes = 1000 }})
	g.Ways(t, func(t *testing.T, v proxytest.Way) {
		resp, _ := v.Get(t, "/late/")
		proxytest.WantStatus(t, resp, 200)
		proxytest.WantFields(t, resp)
		if param(t, resp, "Robots-Gate-Source", "truncated") != true {
			t.Errorf("not marked: %s", resp.Header.Get("Robots-Gate-Source"))
		}
	})
}

func TestDelay(t *testing.T) {
	for delay, want := range map[string]string{"10": "10.0;line=2", "0.5": "0.5;line=2", "1e9": "", "-1": "", "x": "", "0.0001": "0.0;line=2", "999999999999999999": ""} {
		g := proxytest.Start(t, proxytest.Options{Robots: "User-agent: *\nCrawl-delay: " + delay + "\nDisallow: /private/\n"})
		for path := range strings.FieldsSeq("/ /private/") {
			resp, _ := g.Get(g.HTTP + path)
			proxytest.WantFields(t, resp)
			if got := resp.Header.Get("Robots-Gate-Delay"); got != want {
				t.Errorf("Crawl-delay: %s: got %q, want %q", delay, got, want)
			}
		}
	}
}

// An origin's headers can't be mistaken for the gate's, in any spelling.
func TestForgedHeaders(t *testing.T) {
	forged := []string{"Robots-Gate-Decision", "ROBOTS-GATE-TAGS", "robots-gate-meta", "Robots-Gate-Delay", "Robots-Gate-Id", "Robots-Gate-Source", "Robots-Gate-Anything", "Robots-Gate-"}
	g := proxytest.Start(t, proxytest.Options{Robots: "# no rules\n", Handler: func(rw http.ResponseWriter, r *http.Request) {
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
	g.Ways(t, func(t *testing.T, v proxytest.Way) {
		var headers []string
		for _, name := range forged {
			headers = append(headers, name, "forged")
		}
		resp, _ := v.Get(t, "/", headers...)
		proxytest.WantStatus(t, resp, 200)
		proxytest.WantFields(t, resp)
		for name, values := range resp.Header {
			if strings.Contains(strings.Join(values, " "), "forged") {
				t.Errorf("%s: %q", name, values)
			}
		}
		proxytest.WantHeader(t, resp, "Proxy-Status", "")
		proxytest.WantHeader(t, resp, "Robots-Gate-Decision", "allow;reason=no-group")
	})
}

// Of a field that is too long only the beginning counts, and the answer says so.
func TestTruncatedField(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Handler: func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("X-Robots-Tag", "noindex, "+strings.Repeat("unknown, ", 2000)+"nosnippet")
		rw.Header().Set("Content-Type", "text/html")
	}})
	resp, _ := g.Get(g.HTTP + "/")
	proxytest.WantHeader(t, resp, "Robots-Gate-Meta", "complete;bytes=0;truncated")
	proxytest.WantHeader(t, resp, "Robots-Gate-Tags", `noindex;src=x-robots-tag;scope="*"`)
}

// An origin can't keep its page from being read by calling its type a matter of
// the next hop.
func TestConnectionNamesContentType(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{Handler: func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Connection", "Content-Type, X-Robots-Tag")
		rw.Header().Set("Content-Type", "text/html")
		rw.Header().Set("X-Robots-Tag", "nofollow")
		io.WriteString(rw, `<head><meta name="robots" content="noindex"></head>`)
	}})
	resp, _ := g.Get(g.HTTP + "/")
	proxytest.WantHeader(t, resp, "Robots-Gate-Meta", "complete;bytes=")
	proxytest.WantHeader(t, resp, "Robots-Gate-Tags", `nofollow;src=x-robots-tag;scope="*", noindex;src=meta;scope="robots"`)
}

// TestAnnotatorTakesOneRow adds an annotation: of a field of robots.txt that no code knows,
// with its group and line, of a response header field, and of a meta.
func TestAnnotatorTakesOneRow(t *testing.T) {
	response.AddExample(t)
	g := proxytest.Start(t, proxytest.Options{
		Robots: "Example: of no group\nUser-agent: OtherBot\nDisallow: /\nExample: other\nUser-agent: ExampleBot\nDisallow: /private/\nExample: mine # a comment\n",
		Handler: func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "text/html")
			rw.Header().Set("Connection", "X-Example") // removed from the response
			rw.Header().Set("X-Example", "field")
			io.WriteString(rw, `<head><meta name="example" content="meta"></head>`)
		},
	})
	g.Ways(t, func(t *testing.T, v proxytest.Way) {
		resp, _ := v.Get(t, "/")
		want := `mine;group="examplebot";line=7, field, meta`
		proxytest.WantHeader(t, resp, "Robots-Gate-Example", want)
		resp, _ = v.Get(t, "/private/")
		proxytest.WantHeader(t, resp, "Robots-Gate-Example", `mine;group="examplebot";line=7`)
	})
}
