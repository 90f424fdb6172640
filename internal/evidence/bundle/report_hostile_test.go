package bundle

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"golang.org/x/net/html"

	"robotsgate/internal/audit"
	"robotsgate/policy/snapshot"
)

// hostileTexts end each context that a text of the report can be in.
var hostileTexts = []string{
	`"'><script>alert(1)</script>`, `</td></style></title></svg><style>*{display:none}</style>`, `<img src=//evil.example/x onerror=alert(1)>`,
	`javascript:alert(1)`, `" onmouseover="alert(1)`, `'); background: url(//evil.example)`, "{{.Title}}", "\u202e\u2066evil\u2069", "\x1b]0;evil\a\x1b[2J", "\r\nevil: 1", "\x00\xff\u2028",
}

// fill sets all texts in a value that are not the gate's own.
func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.Type().Elem().Kind() == reflect.Struct && v.IsNil() && v.CanSet() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		if !v.IsNil() {
			fill(v.Elem(), text)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Name != "Gate" && f.Name != "Decision" && f.Name != "SHA256" && f.Name != "TDMRep" && f.Name != "Index" && f.Name != "Place" {
				fill(v.Field(i), text)
			}
		}
	case reflect.Slice:
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		for i := range v.Len() {
			fill(v.Index(i), text)
		}
	case reflect.String:
		v.SetString(text + v.String())
	}
}

// TestReportHostile: whatever text a client or a site has chosen, the report has the elements and attributes that it has with
// a plain text, and no character that changes the direction of a line or controls a terminal. Nor has README.txt.
func TestReportHostile(t *testing.T) {
	pages := func(text string) (report, readme string) {
		k := newKept(t, 1)
		line := strings.NewReplacer("\r", "", "\n", "", "\x00", "").Replace(text) // they end a line, or make the file a binary one
		body := robotsText + "Disallow: /" + line + "\nUser-agent: " + line + "\n# " + line + "\n"
		k.bodies[snapshot.Digest(robotsText)] = body
		k.history[origin(0)+text] = []snapshot.Answer{{From: noon, Asker: text, Snapshot: answered(noon)}}
		c, err := parse(k.config)
		if err != nil {
			t.Fatal(err)
		}
		w := newLog(t, "gate.example")
		w.checkpoint(t, true)
		for i, path := range []string{"/page", "/private/x"} {
			for full := range 2 {
				line := k.entry(t, c, i, origin(0), path, noon.Add(time.Minute))
				var r audit.Entry
				if err := json.Unmarshal(line, &r); err != nil {
					t.Fatal(err)
				}
				fill(reflect.ValueOf(&r).Elem(), text)
				if full == 0 {
					r.URL = ""
				}
				line, err := json.Marshal(r)
				if err != nil {
					t.Fatal(err)
				}
				w.entry(append(line, '\n'))
			}
		}
		w.checkpoint(t, false)
		keys := w.keys(t)
		collector, logs := collect(t, &audit.Filter{}, keys, w.Bytes())
		bundle, _ := write(t, collector, options(k, logs, keys, text, text))
		_, contents := members(t, bundle)
		return contents[reportName], contents[readmeName]
	}
	plain, _ := pages("plain")
	want := skeleton(t, plain)
	for _, text := range hostileTexts {
		report, readme := pages(text)
		got := skeleton(t, report)
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Errorf("%q: element %d: got %q, want %q", text, i, got[min(i, len(got)):min(i+5, len(got))], want[min(i, len(want)):min(i+5, len(want))])
				break
			}
		}
		if strings.Contains(text, "evil") && !strings.Contains(report, "evil") {
			t.Errorf("%q: the report does not show it", text)
		}
		for name, page := range map[string]string{reportName: report, readmeName: readme} {
			if i := strings.IndexFunc(page, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) && r != '\u202f' }); i >= 0 {
				t.Errorf("%q: %s has %q", text, name, page[max(i-20, 0):min(i+20, len(page))])
			}
		}
	}
}

// skeleton returns the elements and the attributes of a page, without its texts.
func skeleton(t *testing.T, page string) (elements []string) {
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode {
			elements = append(elements, fmt.Sprint(n.Data, n.Attr))
		}
	}
	return elements
}
