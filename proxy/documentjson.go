package proxy

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"robotsgate/internal/escape"
)

// appendJSON appends the document, indented, since a person with curl reads it too: as
// encoding/json would write it and [escape.JSON] escape it, in a tenth of the time.
func (d *document) appendJSON(b []byte) []byte {
	w := &jsonWriter{b: append(b, '{')}
	w.text("type", d.Type)
	w.text("title", d.Title)
	w.number("status", int64(d.Status))
	w.text("detail", d.Detail)
	w.text("url", d.URL)
	w.some("product_token", d.ProductToken)
	w.some("reason", string(d.Reason))
	if r := d.Rule; r != nil {
		w.begin("rule")
		w.number("line", int64(r.Line))
		w.text("text", r.Text)
		w.end()
	}
	w.some("group", d.Group)
	w.some("note", d.Note)
	w.some("read_as", d.ReadAs)
	if r := d.Robots; r != nil {
		w.begin("robots")
		w.text("url", r.URL)
		if r.Status != 0 {
			w.number("status", int64(r.Status))
		}
		w.text("state", string(r.State))
		w.text("fetched", r.Fetched.Format(time.RFC3339Nano))
		w.number("age", r.Age)
		w.some("sha256", r.SHA256)
		if r.Truncated {
			w.name("truncated")
			w.b = append(w.b, "true"...)
		}
		w.some("error", r.Error)
		w.end()
	}
	if d.CrawlDelay != nil {
		w.name("crawl_delay")
		w.b = append(w.b, encoded(*d.CrawlDelay)...)
	}
	w.text("id", d.ID)
	return append(w.b, "\n}\n"...)
}

// A jsonWriter appends the members of an object, and of objects in it.
type jsonWriter struct {
	b     []byte
	inner bool
}

func (w *jsonWriter) name(name string) {
	if w.b[len(w.b)-1] != '{' {
		w.b = append(w.b, ',')
	}
	w.b = append(w.b, "\n  "...)
	if w.inner {
		w.b = append(w.b, "  "...)
	}
	w.b = append(append(append(w.b, '"'), name...), `": `...)
}

func (w *jsonWriter) begin(name string) {
	w.name(name)
	w.b = append(w.b, '{')
	w.inner = true
}

func (w *jsonWriter) end() {
	w.b = append(w.b, "\n  }"...)
	w.inner = false
}

func (w *jsonWriter) number(name string, n int64) {
	w.name(name)
	w.b = strconv.AppendInt(w.b, n, 10)
}

func (w *jsonWriter) text(name, s string) {
	w.name(name)
	w.b = escape.AppendJSON(w.b, s)
}

// some leaves out what is empty.
func (w *jsonWriter) some(name, s string) {
	if s != "" {
		w.text(name, s)
	}
}

// encoded is for the few values that are not written as they stand.
func encoded(value any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(value) // any string and any delay can be encoded
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}
