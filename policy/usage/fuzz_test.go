package usage_test

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"

	"robotsgate/policy/canonical"
	"robotsgate/policy/robotstxt"
	"robotsgate/policy/usage"
)

// same reports whether two results are equal.
func same(a, b usage.Stated) bool {
	return slices.Equal(a.Preferences, b.Preferences) && slices.Equal(a.Licenses, b.Licenses)
}

// robotsInput returns what a robots.txt is for a path.
func robotsInput(robots []byte, path string) *usage.Input {
	f := robotstxt.Parse(robots, 0)
	return &usage.Input{Robots: f, Group: f.Group("ExampleBot"), Path: canonical.PathOf(path)}
}

// fuzzRobots asserts that what is stated comes from a line with the key, and that unrelated lines
// change nothing.
func fuzzRobots(f *testing.F, key string) {
	f.Fuzz(func(t *testing.T, one, two, path string) {
		robots := []byte("User-agent: *\n" + key + ": " + one + "\n" + key + ": " + two)
		got := usage.Read(robotsInput(robots, path))
		var keyed []int
		file := robotstxt.Parse(robots, 0)
		for _, name := range []string{"Content-Usage", "Content-Signal", "License"} { // the values may hold lines too
			for r := range file.Fields(name) {
				keyed = append(keyed, r.Line)
			}
		}
		for _, p := range got.Preferences {
			if p.In != usage.InRobots || !slices.Contains(keyed, p.Line) || p.Category == "" || len(p.Category) > 64 {
				t.Errorf("%q states %+v, but only lines %v have the key", robots, p, keyed)
			}
		}
		for _, l := range got.Licenses {
			if l.In != usage.InRobots || !slices.Contains(keyed, l.Line) || !bytes.Contains(robots, []byte(l.URL)) && !bytes.Contains(robots, []byte{0}) {
				t.Errorf("%q states %+v, but only lines %v have the key", robots, l, keyed)
			}
		}
		for _, more := range []string{"\nSitemap: https://site.test/x", "\nContent-Usages: search=n, train-ai=n", "\nDisallow:",
			"\nDisallow:\n\nUser-agent: OtherBot\nContent-Usage: train-ai=n\nContent-Signal: ai-train=no\nLicense: https://other.test/\nDisallow: /"} {
			if bytes.IndexByte(robots, 0) >= 0 {
				break // more may be the rest of a character in UTF-16
			}
			if again := usage.Read(robotsInput(append(bytes.Clone(robots), more...), path)); !same(got, again) {
				t.Errorf("%q for %q: got %v, %v with%q", robots, path, got, again, more)
			}
		}
	})
}

func FuzzContentUsage(f *testing.F) {
	f.Add("train-ai=n, search=y", "/a ai-use=n", "/a")
	f.Add("/*.pdf$ train-ai=n;x=(a \"b\"), x=%\"%c3%a9\"", "/*f a=y#, b=n", "/x.pdf?y")
	fuzzRobots(f, "Content-Usage")
}

func FuzzContentSignal(f *testing.F) {
	f.Add("AI-train = NO,search=yes", "/a use=reference, x=yes", "/a")
	fuzzRobots(f, "Content-Signal")
}

func FuzzLicense(f *testing.F) {
	f.Add("https://a.test/l.xml", "HTTP://b.test?x#y", "/a")
	f.Add("https://a.test/l.xml\nLicense: //x\nUser-agent: ExampleBot\nLicense: http://c.test/", "", "/a")
	fuzzRobots(f, "License")
}

// FuzzFields asserts that what is stated comes from the fields, and that another field, or a line
// which states nothing, changes nothing.
func FuzzFields(f *testing.F) {
	f.Add("train-ai=n", "search=no", "1", "https://a.test/p", `<https://a.test/l>; rel="license"; type="application/rsl+xml"`)
	f.Add("a, b=y;c", "x=yes,X=no", " 0 ", "", `<https://a.test/l>; rel=license; type=application/rsl+xml; title="a, <b>", <c>;rel=x`)
	f.Fuzz(func(t *testing.T, contentUsage, contentSignal, reservation, policy, link string) {
		header := http.Header{
			"Content-Usage": {contentUsage}, "Content-Signal": {contentSignal}, "Tdm-Reservation": {reservation}, "Tdm-Policy": {policy}, "Link": {link},
		}
		in := &usage.Input{Path: "/", Header: header}
		got := usage.Read(in)
		for _, p := range got.Preferences {
			from := map[usage.Source]string{usage.ContentUsage: contentUsage, usage.ContentSignal: contentSignal, usage.TDMRep: reservation}[p.Source]
			if p.In != usage.InHeader || p.Line != 0 || from == "" {
				t.Errorf("got %+v from %q", p, from)
			}
			known := slices.Contains([]string{"train-ai", "ai-input", "search", "tdm"}, p.Category)
			if !known && !strings.Contains(strings.ToLower(from), p.Category+"=") && p.Source == usage.ContentUsage {
				t.Errorf("got %+v from %q", p, from)
			}
		}
		for _, l := range got.Licenses {
			from := map[usage.Source]string{usage.RSL: link, usage.TDMRep: policy}[l.Source]
			if l.In != usage.InHeader || l.Line != 0 || !strings.Contains(from, l.URL) {
				t.Errorf("got %+v from %q", l, from)
			}
		}
		for name, value := range map[string]string{
			"Content-Usages": "train-ai=n, search=n", "Content-Signal": "nothing", "Tdm-Reservation": "x", "Tdm-Policy": "/relative", "Link": "<https://other.test/>; rel=icon",
		} {
			in.Header = header.Clone()
			in.Header.Add(name, value)
			if again := usage.Read(in); !same(got, again) {
				t.Errorf("%q: got %v, %v with %s: %s", header, got, again, name, value)
			}
		}
	})
}

// FuzzTDMRep asserts that what is stated comes from an entry that matches, and that an entry for
// other paths changes nothing.
func FuzzTDMRep(f *testing.F) {
	f.Add(`[{"location":"/a","tdm-reservation":1,"tdm-policy":"https://a.test/p"},{"location":"/*","tdm-reservation":"0"}]`, "/a")
	f.Add("\ufeff[{\"location\":\"/\\u00e9\",\"tdm-reservation\":1e0}]", "/%C3%A9")
	f.Fuzz(func(t *testing.T, text, path string) {
		read := func(text string) (s usage.Stated, ok bool) {
			file, err := usage.ParseTDMRep([]byte(text))
			if (file == nil) != (err != nil) {
				t.Fatalf("%q: got %v, %v", text, file, err)
			}
			return usage.Read(&usage.Input{Path: canonical.PathOf(path), TDMRep: file}), err == nil
		}
		got, ok := read(text)
		if len(got.Preferences) > 1 || len(got.Licenses) > len(got.Preferences) || !ok && len(got.Preferences) > 0 {
			t.Errorf("%q: got %v", text, got)
		}
		for _, p := range got.Preferences {
			if p.Source != usage.TDMRep || p.In != usage.InWellKnown || p.Category != "tdm" || p.Line != 0 || len(text) < len(`[{"location":"/","tdm-reservation":1}]`) {
				t.Errorf("%q: got %+v", text, p)
			}
		}
		if !ok {
			return
		}
		begin := strings.IndexByte(text, '[') + 1
		for _, entry := range []string{"0", `{"location":"/no such path$","tdm-reservation":1}`, `{"location":"/","tdm-reservation":2}`} {
			if strings.TrimLeft(text[begin:], " \t\r\n")[0] != ']' {
				entry += ","
			}
			if again, _ := read(text[:begin] + entry + text[begin:]); !same(got, again) && !strings.HasPrefix(path, "/no") {
				t.Errorf("%q for %q: got %v, %v with %s", text, path, got, again, entry)
			}
		}
	})
}
