package proxy

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"robotsgate/internal/escape"
	"robotsgate/policy"
)

// What is written by hand is what encoding/json and escape.JSON make of the same document.
func TestDocumentIsEncodingJSONs(t *testing.T) {
	texts := []string{"", "a", `"`, `\`, "<&>", "\x00", "\n", "\x7f", "ü", "\xff", "\u2028", "\u202e", "\u009b", "\ue000", "\U000e0041", "\U0001d11e", "https://a.test/?q=1&r=<2>"}
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 3))
		text := func() string { return texts[r.IntN(len(texts))] + texts[r.IntN(len(texts))] }
		d := document{Type: text(), Title: text(), Status: r.IntN(600), Detail: text(), ID: text(), Evidence: policy.Evidence{
			URL: text(), ProductToken: text(), Reason: policy.Reason(text()), Group: text(), Note: text(),
		}}
		if r.IntN(2) == 0 {
			d.Rule = &policy.RuleEvidence{Line: r.IntN(3), Text: text()}
		}
		if r.IntN(2) == 0 {
			d.Robots = &policy.RobotsEvidence{
				URL: text(), Status: r.IntN(2) * 404, State: policy.State(text()), Fetched: time.Unix(r.Int64N(1e10), 0).UTC(), Age: r.Int64N(1000) - 500,
				SHA256: text(), Truncated: r.IntN(2) == 0, Error: text(),
			}
		}
		if r.IntN(2) == 0 {
			d.CrawlDelay = new([]float64{0, 0.5, 1, 1e-9, 1e22}[r.IntN(5)])
		}
		wantEncodingJSONs(t, &d)
	}
}

func wantEncodingJSONs(t *testing.T, d *document) {
	t.Helper()
	var want bytes.Buffer
	enc := json.NewEncoder(&want)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(d); err != nil {
		t.Fatal(err)
	}
	if got, want := string(d.appendJSON(nil)), string(escape.JSON(want.Bytes())); got != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
}

// TestDocumentHasAll sets one member after the other: none is forgotten, whatever is added
// to the evidence.
func TestDocumentHasAll(t *testing.T) {
	var d document
	setEach(t, reflect.ValueOf(&d).Elem(), func() { wantEncodingJSONs(t, &d) })
}

// setEach sets what a value holds, and calls check behind each step.
func setEach(t *testing.T, v reflect.Value, check func()) {
	t.Helper()
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1e9, 5).UTC()))
			break
		}
		for _, field := range v.Fields() {
			setEach(t, field, check)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		check()
		setEach(t, v.Elem(), check)
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Float64:
		v.SetFloat(1.5)
	default:
		t.Fatalf("a document has a %v", v.Type())
	}
	check()
}
