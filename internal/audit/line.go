package audit

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"time"

	"robotsgate/internal/escape"
)

// appendLine appends a record as a line, less its link: as encoding/json would write
// it, in a tenth of the time. What a terminal would obey, and what turns a line's
// direction, is escaped beyond what JSON asks for.
func appendLine(b []byte, r *Record, c *clock) ([]byte, error) {
	w := writer{b: b, clock: c}
	w.b = append(w.b, '{')
	w.time(`"time":`, r.Time)
	w.text(`,"id":`, r.ID)
	w.some(`,"crawler":`, r.Crawler)
	w.some(`,"client":`, r.Client)
	w.text(`,"method":`, r.Method)
	w.some(`,"origin":`, r.Origin)
	w.some(`,"path":`, r.Path)
	w.some(`,"url":`, r.URL)
	w.is(`,"redacted":`, r.Redacted)
	w.is(`,"tunnel":`, r.Tunnel)
	w.some(`,"decision":`, r.Decision)
	if r.Enforced != nil {
		w.b = strconv.AppendBool(append(w.b, `,"enforced":`...), *r.Enforced)
	}
	w.some(`,"reason":`, string(r.Reason))
	w.some(`,"note":`, r.Note)
	w.some(`,"read_as":`, r.ReadAs)
	w.some(`,"rule":`, r.Rule)
	w.nonzero(`,"line":`, r.Line)
	w.some(`,"group":`, r.Group)
	w.some(`,"token":`, r.Token)
	w.list(`,"tokens":`, r.Tokens)
	if !r.Decided.IsZero() {
		w.time(`,"decided":`, r.Decided)
	}
	if r.Robots != nil {
		w.robots(r.Robots)
	}
	w.list(`,"tags":`, r.Tags)
	w.number(`,"status":`, int64(r.Status))
	w.number(`,"bytes":`, r.Bytes)
	w.float(`,"duration":`, r.Duration)
	w.some(`,"error":`, r.Error)
	w.some(`,"config":`, r.Config)
	w.b = append(w.b, "}\n"...)
	return w.b, w.err
}

// A writer appends members, each by its name as it stands in the line.
type writer struct {
	b     []byte
	clock *clock
	err   error
}

func (w *writer) robots(r *Robots) {
	w.text(`,"robots":{"url":`, r.URL)
	w.text(`,"state":`, string(r.State))
	w.number(`,"age":`, r.Age)
	w.time(`,"judged":`, r.Judged)
	w.answer(",", &r.Answer)
	if r.Instead != nil {
		w.answer(`,"instead_of":{`, r.Instead)
		w.b = append(w.b, '}')
	}
	if r.Copy != nil {
		w.answer(`,"copy":{`, r.Copy)
		w.b = append(w.b, '}')
	}
	w.b = append(w.b, '}')
}

// answer appends the members of one behind what stands before the first.
func (w *writer) answer(before string, a *Answer) {
	w.b = append(w.b, before...)
	if a.Status != 0 {
		w.number(`"status":`, int64(a.Status))
		w.b = append(w.b, ',')
	}
	if a.SHA256 != "" {
		w.text(`"sha256":`, a.SHA256)
		w.b = append(w.b, ',')
	}
	w.time(`"fetched":`, a.Fetched)
	if a.Lifetime != nil {
		w.float(`,"lifetime":`, *a.Lifetime)
	}
	if !a.Since.IsZero() {
		w.time(`,"since":`, a.Since)
	}
	w.is(`,"looped":`, a.Looped)
	w.is(`,"others":`, a.Others)
}

func (w *writer) text(name, s string) { w.b = escape.AppendJSON(append(w.b, name...), s) }

// some leaves out what is empty.
func (w *writer) some(name, s string) {
	if s != "" {
		w.text(name, s)
	}
}

func (w *writer) list(name string, all []string) {
	if len(all) == 0 {
		return
	}
	w.b = append(append(w.b, name...), '[')
	for i, s := range all {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		w.b = escape.AppendJSON(w.b, s)
	}
	w.b = append(w.b, ']')
}

func (w *writer) is(name string, yes bool) {
	if yes {
		w.b = append(append(w.b, name...), "true"...)
	}
}

func (w *writer) number(name string, n int64) {
	w.b = strconv.AppendInt(append(w.b, name...), n, 10)
}

func (w *writer) nonzero(name string, n int) {
	if n != 0 {
		w.number(name, int64(n))
	}
}

var errNumber = errors.New("a number that JSON has not")

func (w *writer) float(name string, f float64) {
	w.b = append(w.b, name...)
	// Seconds are whole nanoseconds as a rule. With 15 digits at most they are the shortest
	// text for this number, which else would have to be searched for.
	const most = 1e15
	nanos := math.Round(f * 1e9)
	switch abs := math.Abs(f); {
	case 1e3 <= nanos && nanos < most && nanos/1e9 == f:
		w.nanoseconds(int64(nanos))
	case math.IsNaN(f) || math.IsInf(f, 0):
		w.err = errNumber
	case abs != 0 && abs < 1e-6 || abs >= 1e21: // with an exponent, in JSON's own way
		text, _ := json.Marshal(f)
		w.b = append(w.b, text...)
	default:
		w.b = strconv.AppendFloat(w.b, f, 'f', -1, 64)
	}
}

// nanoseconds appends so many as a fraction of a second.
func (w *writer) nanoseconds(n int64) {
	const second = 1e9
	w.b = strconv.AppendInt(w.b, n/second, 10)
	if n %= second; n > 0 {
		w.b = appendFraction(w.b, int(n))
	}
}

// time appends one as RFC 3339 has it, which ends with the year 9999.
func (w *writer) time(name string, t time.Time) {
	b, err := w.clock.append(append(append(w.b, name...), '"'), t)
	if err != nil {
		w.err = err
		return
	}
	w.b = append(b, '"')
}
