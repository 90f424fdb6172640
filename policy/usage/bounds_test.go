package usage_test

import (
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"robotsgate/htmlmeta"
	"robotsgate/internal/gatetest"
	"robotsgate/policy/robotstxt"
	"robotsgate/policy/usage"
)

// read returns what a robots.txt and the header state for /page.
func read(robots string, header http.Header) usage.Stated {
	in := &usage.Input{Path: "/page", Header: header}
	if robots != "" {
		in.Robots = robotstxt.Parse([]byte(robots), 0)
		in.Group = in.Robots.Group()
	}
	return usage.Read(in)
}

func categories(s usage.Stated) (list []string) {
	for _, p := range s.Preferences {
		list = append(list, p.Category)
	}
	return list
}

// TestLengths checks the bounds on the bytes of a value, each with the last length that is read and
// the first that is not.
func TestLengths(t *testing.T) {
	const bound = 128 << 10
	padded := func(before, after string, length int) string {
		return before + strings.Repeat("p", length-len(before)-len(after)) + after
	}
	url := func(length int) string { return padded("https://a.test/", "", length) }
	for _, test := range []struct {
		name   string
		bound  int
		stated func(length int) usage.Stated
	}{
		{"Content-Usage field", bound, func(n int) usage.Stated {
			return read("", http.Header{"Content-Usage": {padded("search=n;x=\"", "\"", n)}})
		}},
		{"Content-Usage field of two lines", bound, func(n int) usage.Stated {
			return read("", http.Header{"Content-Usage": {"search=n", padded("x=\"", "\"", n-len("search=n, "))}})
		}},
		{"Content-Usage line", bound, func(n int) usage.Stated {
			return read("User-agent: *\nContent-Usage: "+padded("search=n;x=\"", "\"", n), nil)
		}},
		{"Content-Signal field", bound, func(n int) usage.Stated {
			return read("", http.Header{"Content-Signal": {padded("search=no,", "", n)}})
		}},
		{"Content-Signal line", bound, func(n int) usage.Stated {
			return read("User-agent: *\nContent-Signal: "+padded("search=no,", "", n), nil)
		}},
		{"Link field", bound, func(n int) usage.Stated {
			return read("", http.Header{"Link": {padded("<https://a.test/>; rel=license; type=application/rsl+xml; x=\"", "\"", n)}})
		}},
		{"License line", 2048, func(n int) usage.Stated { return read("License: "+url(n), nil) }},
		{"tdm-policy", 2048, func(n int) usage.Stated {
			s := read("", http.Header{"Tdm-Reservation": {"1"}, "Tdm-Policy": {url(n)}})
			return usage.Stated{Licenses: s.Licenses}
		}},
		{"label in Content-Usage", 64, func(n int) usage.Stated {
			return read("", http.Header{"Content-Usage": {padded("x", "", n) + "=n"}})
		}},
		{"label in Content-Signal", 64, func(n int) usage.Stated {
			return read("", http.Header{"Content-Signal": {padded("x", "", n) + "=no"}})
		}},
	} {
		at, beyond := test.stated(test.bound), test.stated(test.bound+1)
		if len(at.Preferences)+len(at.Licenses) != 1 {
			t.Errorf("%s of %d bytes: got %.300v", test.name, test.bound, at)
		}
		if len(beyond.Preferences)+len(beyond.Licenses) != 0 {
			t.Errorf("%s of %d bytes: got %.300v, want nothing", test.name, test.bound+1, beyond)
		}
	}
}

// TestLongValueHidesNothing checks that a line that is too long is no rule.
func TestLongValueHidesNothing(t *testing.T) {
	long := "User-agent: *\nContent-Usage: search=n\nContent-Usage: /page search=y;x=\"" + strings.Repeat("x", 128<<10) + "\"\n"
	if got := read(long, nil).Values()["search"]; got != "n" {
		t.Errorf("got %q, want n", got)
	}
}

// TestLabels checks that the first 16 of all other labels are listed, wherever they are stated.
func TestLabels(t *testing.T) {
	var robots strings.Builder
	robots.WriteString("User-agent: *\nContent-Usage: ")
	for i := 39; i >= 20; i-- {
		fmt.Fprintf(&robots, "k%02d=n, ", i)
	}
	robots.WriteString("search=y, k03=n, k03=1\nContent-Signal: k01=no, K05=yes\n")
	header := http.Header{"Content-Usage": {"k02=y, k41=n, tdm=n"}, "Content-Signal": {"k00=no, k02=no"}}
	got := categories(read(robots.String(), header))
	want := []string{"k00", "k01", "k02", "k02", "k05"}
	for i := 20; i < 32; i++ {
		want = append(want, fmt.Sprintf("k%02d", i))
	}
	want = append(want, "search", "tdm")
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestLicenses checks that the first 16 are listed.
func TestLicenses(t *testing.T) {
	var want []string
	header := http.Header{}
	for i := range 40 {
		url := fmt.Sprintf("https://a.test/%d", i)
		header.Add("Link", "<"+url+">; rel=license; type=application/rsl+xml")
		if i < 16 {
			want = append(want, url)
		}
	}
	if got := read("", header).URLs(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestEntries checks that the first 10,000 entries of a tdmrep.json count, and that those that
// cannot be read are among them.
func TestEntries(t *testing.T) {
	for _, test := range []struct {
		before int
		want   string
	}{{9999, "n"}, {10000, ""}} {
		f, err := usage.ParseTDMRep([]byte("[" + strings.Repeat("0,", test.before) + `{"location":"/","tdm-reservation":1}]`))
		if err != nil {
			t.Fatal(err)
		}
		if got := usage.Read(&usage.Input{Path: "/", TDMRep: f}).Values()["tdm"]; got != test.want {
			t.Errorf("after %d entries: got %q, want %q", test.before, got, test.want)
		}
	}
}

// TestManyPreferences checks that past a hundred preferences only those are listed that change a
// value.
func TestManyPreferences(t *testing.T) {
	robots := "User-agent: *\n" + strings.Repeat("Content-Usage: search=y\n", 5000) + "Content-Usage: search=n, x=y\n" + strings.Repeat("Content-Usage: search=n\n", 5000)
	got := read(robots, nil)
	if n := len(got.Preferences); n != 102 || got.Values()["search"] != "n" || got.Values()["x"] != "y" {
		t.Errorf("got %d preferences, %v", n, got.Values())
	}
	// What robots.txt states is listed alike when there is a response.
	robots += strings.Repeat("Content-Signal: search=no, y=yes\n", 200)
	list := func(header http.Header) []usage.Preference {
		return slices.DeleteFunc(read(robots, header).Preferences, func(p usage.Preference) bool { return p.In != usage.InRobots })
	}
	header := http.Header{"Content-Usage": {"search=n, y=y, z=n"}, "Content-Signal": slices.Repeat([]string{"search=no, w=no"}, 200)}
	if with, without := list(header), list(nil); !slices.Equal(with, without) || len(with) != 103 {
		t.Errorf("got %d preferences of robots.txt with a response, %d without", len(with), len(without))
	}
	by, _, reserved := got.Reserved([]usage.Purpose{usage.Search}, "")
	if !reserved || by.Line != 5002 {
		t.Errorf("got %v by line %d, want 5002", reserved, by.Line)
	}
}

// TestTDMRepErrors checks what is not a tdmrep.json.
func TestTDMRepErrors(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"", "not valid JSON"},
		{"null", "not an array"},
		{`{"location":"/","tdm-reservation":1}`, "not an array"},
		{"[1", "not valid JSON"},
		{"[1] 2", "not valid JSON"},
		{"[\"\xff\"]", "not in UTF-8"},
		{strings.Repeat("[", 10001) + strings.Repeat("]", 10001), "not valid JSON"},
	} {
		if f, err := usage.ParseTDMRep([]byte(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.40q: got %v, %v; want an error with %q", test.text, f, err, test.want)
		}
	}
	if _, err := usage.ParseTDMRep([]byte(strings.Repeat("[", 10000) + strings.Repeat("]", 10000))); err != nil {
		t.Errorf("10,000 levels: %v", err)
	}
}

// TestHostile checks that half a megabyte of each kind takes no more than a moment and little memory.
// The time is that of this process, on a machine that may be busy, so the bound is far above what is needed.
func TestHostile(t *testing.T) {
	const size = 512 << 10
	fill := func(format string) string { // with a number in place of %d
		var b strings.Builder
		for i := 0; b.Len() < size; i++ {
			b.WriteString(strings.ReplaceAll(format, "%d", fmt.Sprint(i)))
		}
		return b.String()
	}
	robots := func(format string) *usage.Input {
		f := robotstxt.Parse([]byte("User-agent: *\n"+fill(format)), 0)
		return &usage.Input{Robots: f, Group: f.Group(), Path: "/" + strings.Repeat("abcxbcdx", 4<<10)}
	}
	field := func(name, format string) *usage.Input {
		in := &usage.Input{Path: "/", Header: http.Header{}}
		for all := fill(format); all != ""; {
			n := min(len(all), 127<<10)
			in.Header.Add(name, strings.TrimRight(all[:n], ", "))
			all = all[n:]
		}
		if name == "Content-Usage" {
			in.Header[name] = in.Header[name][:1]
		}
		return in
	}
	file := func(format string) *usage.Input {
		f, err := usage.ParseTDMRep([]byte("[" + strings.TrimSuffix(fill(format), ",") + "]"))
		if err != nil {
			t.Fatal(err)
		}
		return &usage.Input{TDMRep: f, Path: "/" + strings.Repeat("abcxbcdx", 4<<10)}
	}
	var labels strings.Builder
	for i := range 9000 {
		fmt.Fprintf(&labels, "k%d=no,", i)
	}
	var metas []htmlmeta.Meta
	var links []htmlmeta.Link
	for i := range 20000 {
		metas = append(metas, htmlmeta.Meta{Name: "tdm-reservation", Content: "x"}, htmlmeta.Meta{Name: "tdm-policy", Content: "https://a.test/ "})
		links = append(links, htmlmeta.Link{Rel: "license", Type: "application/rsl+xml", Href: fmt.Sprintf("https://a.test/%d", i)})
	}
	for name, in := range map[string]*usage.Input{
		"lines":                robots("Content-Usage: search=n\n"),
		"lines, many labels":   robots("Content-Usage: z%d=n, y%d=n, x=n, w=n\n"),
		"labels":               robots("Content-Usage: " + strings.Repeat("a%d=n, b%d=y, ", 500) + "x\n"),
		"labels descending":    robots("Content-Usage: " + strings.Repeat("z%d, ", 100) + "x\nContent-Usage: x%d=n\n"),
		"paths":                robots("Content-Usage: /abc search=n\n"),
		"paths that grow":      robots("Content-Usage: /*%d search=n\n"),
		"stars":                robots("Content-Usage: /*abcd*a search=n\n"),
		"stars and queries":    robots("Content-Usage: /*?*abcd:* search=n\n"),
		"broken at the end":    robots("Content-Usage: search=n;a=(a a a a a a \"x\"),\n"),
		"signals":              robots("Content-Signal: search=no\n"),
		"signals, one line":    robots("Content-Signal: " + strings.Repeat("s%d=no,", 10000) + "\n"),
		"signals, long lines":  robots("Content-Signal: " + labels.String() + "\n"),
		"commas":               robots("Content-Signal: a=no" + strings.Repeat(",", 100000) + "\n"),
		"licences":             robots("License: https://a.test/%d\n"),
		"unreadable licences":  robots("License: https://a.test/%d<\n"),
		"Content-Usage":        field("Content-Usage", "a%d=n,"),
		"parameters":           field("Content-Usage", "a=n;a;b;c=\"x\","),
		"byte sequences":       field("Content-Usage", "a=:"+strings.Repeat("AAAA", 300)+":,"),
		"inner lists":          field("Content-Usage", "a=(a b c \"x\" %\"%20\" 1.5),"),
		"Content-Signal":       field("Content-Signal", "a%d=no,"),
		"Link":                 field("Link", "<a>,"),
		"Link, RSL":            field("Link", "<https://a.test/%d>;rel=license;type=\"application/rsl+xml\","),
		"Link, parameters":     field("Link", "<a>;rel;rel=\"license\";x=\"\\\\\";type=application/rsl+xml,"),
		"Link, open quotes":    field("Link", "<a>;rsl+xml=\""),
		"TDM-Reservation":      field("Tdm-Reservation", "2,"),
		"entries":              file(`{"location":"/%d","tdm-reservation":1},`),
		"entries, stars":       file(`{"location":"/*abcd*","tdm-reservation":1},`),
		"entries, small":       file(`0,`),
		"one entry":            file(`{"location":"/","tdm-reservation":1,` + strings.Repeat(`"a%d":1,`, 50000) + `"x":[]},`),
		"entries, deep":        file(strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + ","),
		"metas and links":      {Path: "/", Metas: metas, Links: links},
		"one pattern of stars": {Path: "/" + strings.Repeat("a", 60<<10), Group: robots("Content-Usage: /" + strings.Repeat("*a", 100000) + "b search=n\n").Group},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := gatetest.CPUTime(t)
			got := usage.Read(in)
			took := gatetest.CPUTime(t) - start
			runtime.ReadMemStats(&after)
			allocated := after.TotalAlloc - before.TotalAlloc
			t.Logf("%v, %d KiB, %d preferences, %d licences", took, allocated>>10, len(got.Preferences), len(got.Licenses))
			if took > time.Second || allocated > 6<<20 {
				t.Errorf("took %v and allocated %d KiB", took, allocated>>10)
			}
			if len(got.Preferences) > 200 || len(got.Licenses) > 16 {
				t.Errorf("got %d preferences, %d licences", len(got.Preferences), len(got.Licenses))
			}
		})
	}
}

// TestExhausted checks that "n" is not lost when the patterns take too long to compare.
func TestExhausted(t *testing.T) {
	path := "/" + strings.Repeat("abcxbcdx", 4<<10)
	var robots, tdmrep strings.Builder
	robots.WriteString("User-agent: *\n")
	for i := range 5000 {
		fmt.Fprintf(&robots, "Content-Usage: /*abcd*%d ai-use=n\n", i)
		if i > 0 {
			tdmrep.WriteString(",")
		}
		fmt.Fprintf(&tdmrep, `{"location":"/*abcd*%d","tdm-reservation":0}`, i)
	}
	robots.WriteString("Content-Usage: /*x search=n\nContent-Usage: / train-ai=n\nContent-Usage: /*" + strings.Repeat("x", 50) + " search=y\n")
	f := robotstxt.Parse([]byte(robots.String()), 0)
	values := usage.Read(&usage.Input{Group: f.Group(), Path: path}).Values()
	if values["search"] != "n" || values["train-ai"] != "n" || values["ai-input"] != "n" || values["tdm"] != "" {
		t.Errorf("got %v", values)
	}
	tdm, err := usage.ParseTDMRep([]byte("[" + tdmrep.String() + `,{"location":"/*x","tdm-reservation":1}]`))
	if err != nil {
		t.Fatal(err)
	}
	if got := usage.Read(&usage.Input{TDMRep: tdm, Path: path}).Values()["tdm"]; got != "n" {
		t.Errorf("got tdm %q, want n", got)
	}
}
