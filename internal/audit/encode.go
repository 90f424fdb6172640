package audit

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"robotsgate/internal/logtext"
	"robotsgate/internal/record"
	"robotsgate/policy/usage"
)

// This file writes records as encoding/json would, without reflection, since each request waits for it. encoding/json
// takes 5 % of the processor time of a small request.

// lineOf returns the record as a line of JSON, without its place in the log. One that is too long is without its lists.
func lineOf(r record.Record) ([]byte, error) {
	line, err := encode(&r)
	if len(line) > record.Max && len(r.Tags)+len(r.Usage)+len(r.Licenses) > 0 {
		r.Tags, r.Usage, r.Licenses, r.Cut = nil, nil, nil, true
		return encode(&r)
	}
	return line, err
}

// encode returns the record as a line of JSON, without its place in the log. Beyond what JSON requires, control characters
// and characters that change the direction of text are escaped.
func encode(r *record.Record) ([]byte, error) {
	o := object{b: append(make([]byte, 0, 1024), '{')}
	o.time("time", r.Time)
	o.text("id", r.ID)
	o.optional("crawler", r.Crawler)
	o.optional("client", r.Client)
	o.text("method", r.Method)
	o.optional("origin", r.Origin)
	o.optional("path", r.Path)
	o.optional("url", r.URL)
	o.flag("redacted", r.Redacted)
	o.flag("tunnel", r.Tunnel)
	o.flag("socks", r.Socks)
	o.optional("decision", r.Decision)
	if r.Enforced != nil {
		o.name("enforced")
		o.b = strconv.AppendBool(o.b, *r.Enforced)
	}
	o.optional("reason", r.Reason)
	switch {
	case r.Paced.Refused:
		o.text("paced", "refused")
	case r.Paced.Held != 0:
		o.float("paced", r.Paced.Held)
	}
	o.optional("refused", string(r.Refused))
	if r.Reserved != nil {
		o.begin("reserved")
		o.preference(r.Reserved)
		o.end()
	}
	o.optional("note", r.Note)
	o.optional("read_as", r.ReadAs)
	o.optional("rule", r.Rule)
	o.positive("line", int64(r.Line))
	o.optional("group", r.Group)
	o.optional("token", r.Token)
	o.list("tokens", r.Tokens)
	o.optionalTime("decided", r.Decided)
	if r.Robots != nil {
		o.begin("robots")
		o.robots(r.Robots)
		o.end()
	}
	o.optional("tdmrep_sha256", r.TDMRep)
	o.list("tags", r.Tags)
	o.preferences("usage", r.Usage)
	o.list("licenses", r.Licenses)
	o.flag("cut", r.Cut)
	o.number("status", int64(r.Status))
	o.number("bytes", r.Bytes)
	o.float("duration", r.Duration)
	o.optional("error", r.Error)
	o.optional("user_agent", r.UserAgent)
	o.optional("signed", r.Signed)
	o.optional("config", r.Config)
	o.optional("gate", r.Gate)
	return append(o.b, "}\n"...), o.err
}

// An object is a JSON object that is being written.
type object struct {
	b   []byte
	err error
}

func (o *object) robots(r *record.Robots) {
	o.text("url", r.URL)
	o.text("state", r.State)
	o.number("age", r.Age)
	o.time("judged", r.Judged)
	o.answer(&r.Answer)
	if r.Instead != nil {
		o.begin("instead_of")
		o.answer(r.Instead)
		o.end()
	}
	if r.Copy != nil {
		o.begin("copy")
		o.answer(r.Copy)
		o.end()
	}
}

func (o *object) answer(a *record.Answer) {
	o.positive("status", int64(a.Status))
	o.optional("sha256", a.SHA256)
	o.time("fetched", a.Fetched)
	if a.Lifetime != nil {
		o.float("lifetime", *a.Lifetime)
	}
	o.optionalTime("since", a.Since)
	o.flag("html", a.HTML)
	o.flag("looped", a.Looped)
	o.flag("substitute", a.Substitute)
}

func (o *object) preferences(name string, all []usage.Detail) {
	if len(all) == 0 {
		return
	}
	o.name(name)
	for i := range all {
		o.b = append(o.b, "[,"[min(i, 1)], '{')
		o.preference(&all[i])
		o.end()
	}
	o.b = append(o.b, ']')
}

func (o *object) preference(p *usage.Detail) {
	o.text("use", p.Use)
	o.text("value", p.Value)
	o.text("source", string(p.Source))
	o.text("in", string(p.In))
	o.positive("line", int64(p.Line))
}

func (o *object) name(name string) {
	if o.b[len(o.b)-1] != '{' {
		o.b = append(o.b, ',')
	}
	o.b = append(append(append(o.b, '"'), name...), '"', ':')
}

func (o *object) begin(name string) {
	o.name(name)
	o.b = append(o.b, '{')
}

func (o *object) end() { o.b = append(o.b, '}') }

func (o *object) text(name, s string) {
	o.name(name)
	o.string(s)
}

// optional leaves out an empty text.
func (o *object) optional(name, s string) {
	if s != "" {
		o.text(name, s)
	}
}

func (o *object) list(name string, all []string) {
	if len(all) == 0 {
		return
	}
	o.name(name)
	for i, s := range all {
		o.b = append(o.b, "[,"[min(i, 1)])
		o.string(s)
	}
	o.b = append(o.b, ']')
}

// string writes printable ASCII as it is.
func (o *object) string(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			o.escaped(s)
			return
		}
	}
	o.b = append(append(append(o.b, '"'), s...), '"')
}

func (o *object) escaped(s string) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false) // so that a URL with "&" can be searched for
	_ = enc.Encode(s)        // every string can be encoded
	o.b = append(o.b, logtext.JSON(bytes.TrimSuffix(text.Bytes(), []byte{'\n'}))...)
}

func (o *object) flag(name string, v bool) {
	if v {
		o.name(name)
		o.b = append(o.b, "true"...)
	}
}

func (o *object) number(name string, n int64) {
	o.name(name)
	o.b = strconv.AppendInt(o.b, n, 10)
}

// positive leaves out 0.
func (o *object) positive(name string, n int64) {
	if n != 0 {
		o.number(name, n)
	}
}

func (o *object) float(name string, f float64) {
	if f == 0 || f >= 1e-6 && f < 1e21 { // encoding/json writes these without an exponent
		o.name(name)
		o.b = strconv.AppendFloat(o.b, f, 'f', -1, 64)
		return
	}
	text, err := json.Marshal(f)
	if err != nil {
		o.err = err
		return
	}
	o.name(name)
	o.b = append(o.b, text...)
}

func (o *object) time(name string, t time.Time) {
	o.name(name)
	b, err := t.AppendText(append(o.b, '"'))
	if err != nil {
		o.err = err
		return
	}
	o.b = append(b, '"')
}

// optionalTime leaves out the zero time.
func (o *object) optionalTime(name string, t time.Time) {
	if !t.IsZero() {
		o.time(name, t)
	}
}
