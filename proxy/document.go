package proxy

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	html "html/template"
	"maps"
	"net/http"
	"strconv"
	"strings"
	text "text/template"

	"robotsgate/internal/field"
	"robotsgate/internal/logtext"
	"robotsgate/policy"
	"robotsgate/policy/usage"
	"robotsgate/proxy/internal/header"
	"robotsgate/proxy/internal/response"
)

//go:embed pages
var pages embed.FS

var (
	htmlPages = html.Must(html.ParseFS(pages, "pages/*.html"))
	textPages = text.Must(text.ParseFS(pages, "pages/*.txt", "pages/*.pac"))
)

// response returns the answer as a response without a header: that is set on h.
func (p *answer) response(in *inbound, s *response.Signals, h http.Header) *http.Response {
	var body []byte
	if p.file != nil {
		maps.Copy(h, p.file.header)
		body = []byte(p.file.body)
	} else {
		body = p.problem(in, s, h)
	}
	response.Annotate(h, s)
	length := len(body)
	if in.method == http.MethodHead {
		body = nil
	}
	own := &ownBody{}
	own.Reset(body)
	return &http.Response{StatusCode: p.status, ProtoMajor: 1, ProtoMinor: 1, Body: own, ContentLength: int64(length)}
}

// problem sets the header of a problem, and returns its body.
func (p *answer) problem(in *inbound, s *response.Signals, h http.Header) []byte {
	body, contentType := p.form(in, s)
	fixed := [...]string{contentType, strconv.Itoa(len(body)), "no-store", "Accept"}
	h["Content-Type"] = fixed[0:1:1]
	h["Content-Length"] = fixed[1:2:2]
	h["Cache-Control"] = fixed[2:3:3]
	h["Vary"] = fixed[3:4:4] // which chooses the form
	if p.retry > 0 {
		h.Set("Retry-After", retrySeconds(p.retry))
	}
	if p.closeAfter {
		h.Set("Connection", "close")
	}
	if p.status == http.StatusMethodNotAllowed {
		h.Set("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, CONNECT")
	}
	if p.status == http.StatusProxyAuthRequired {
		h.Set("Proxy-Authenticate", loginChallenge)
	}
	setStatus(h, p.fault, p.cause)
	return body
}

// An ownBody is the body of a response of the gate itself.
type ownBody struct{ bytes.Reader }

func (*ownBody) Close() error { return nil }

// setStatus sets the gate's member, the only one on a response of the gate itself.
func setStatus(h http.Header, fault, details string) {
	f := header.NewField()
	f.Token(header.GateName)
	f.Param("error")
	f.Token(fault)
	if details != "" {
		f.Param("details")
		f.Quoted(ascii(details))
	}
	f.Set(h, header.Status)
}

// ascii makes text fit for a String, which RFC 9209, 2.1.4 asks for.
func ascii(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s[:min(len(s), header.MaxText)])
}

// document is the problem as JSON.
type document struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	policy.Evidence
	Reserved *usage.Detail `json:"reserved,omitempty"` // of policy.ByUsage
	Licenses []string      `json:"licenses,omitempty"` // of policy.ByUsage
	Override string        `json:"override,omitempty"` // that the operator can add, in front of the others, to allow this request
	ID       string        `json:"id"`
	Rules    string        `json:"-"` // for people: what the robots rules say, if they are not the reason of the answer
}

func (p *answer) document(in *inbound, s *response.Signals) document {
	doc := document{
		Type: "urn:robotsgate:" + cmp.Or(p.kind, p.fault), Title: cmp.Or(p.title, http.StatusText(p.status)), Status: p.status,
		Detail: p.detail, Evidence: policy.Evidence{URL: in.url}, ID: in.id,
	}
	if p.retry > 0 {
		doc.Detail += " Try again in " + field.Duration(wholeSeconds(p.retry)) + "."
	}
	if d := s.Decision; d != nil {
		doc.Evidence = d.Evidence(in.url)
		if d.Reason == policy.ByUsage && d.Reserved.Category != "" {
			doc.Reserved, doc.Licenses = new(d.Reserved.Detail()), s.Stated.URLs()
		}
		if d.Denied() {
			doc.Override = d.Permit(in.target, in.method)
		}
	}
	return doc
}

// form returns the problem in the form that the client prefers.
func (p *answer) form(in *inbound, s *response.Signals) (body []byte, contentType string) {
	doc := p.document(in, s)
	var b bytes.Buffer
	switch header.Negotiate(in.header["Accept"]) {
	case "text/html":
		_ = htmlPages.ExecuteTemplate(&b, "refusal.html", doc.printable(s.Decision)) // TestForms executes both
		return b.Bytes(), "text/html; charset=utf-8"
	case "text/plain":
		_ = textPages.ExecuteTemplate(&b, "refusal.txt", doc.printable(s.Decision))
		return b.Bytes(), "text/plain; charset=utf-8"
	}
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ") // a person with curl reads it too
	if err := enc.Encode(doc); err != nil {
		return nil, "application/problem+json" // a string and a finite number can be encoded
	}
	return logtext.JSON(b.Bytes()), "application/problem+json"
}

// printable returns the document with texts escaped for display, and the group's name as the file
// writes it. The product token, that name, the URL of robots.txt and its digest are printable
// ASCII already.
func (d document) printable(decision *policy.Decision) *document {
	if decision != nil {
		d.Group = decision.Group.Written()
		they, allow, are := "they", "allow", "are"
		if decision.Reason == policy.ByOverride {
			they, allow, are = "an override in their place", "allows", "is"
		}
		switch {
		case decision.Allow:
			d.Rules = they + " " + allow + " this request (" + string(decision.Reason) + ")"
		case !decision.Enforced:
			d.Rules = they + " would deny this request (" + string(decision.Reason) + "), but " + are + " not enforced"
		}
	}
	d.Detail, d.URL, d.Note = logtext.Printable(d.Detail), logtext.Printable(d.URL), logtext.Printable(d.Note)
	d.Override = logtext.Printable(d.Override)
	d.ReadAs, d.Title = logtext.Printable(d.ReadAs), logtext.Printable(d.Title)
	if d.Rule != nil {
		d.Rule = &policy.RuleEvidence{Line: d.Rule.Line, Text: logtext.Printable(d.Rule.Text)}
	}
	return &d
}
