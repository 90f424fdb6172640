package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"robotsgate/internal/escape"
	"robotsgate/policy"
	"robotsgate/policy/robotstxt"
)

// maxLine bounds one line of a batch, in bytes: a robots.txt in base64 fits in
// many times over.
const maxLine = 64 << 20

// batch answers JSON lines with JSON lines, in order. A line that can't be
// answered is answered with why, and the command ends with status 2. Where
// standard error is a terminal it shows how far it has come, unless the answers
// go to a terminal themselves.
func batch(s Streams, answer func(line []byte) (any, error)) error {
	done := newBatchProgress(s.In)
	if _, ok := terminal(s.Out); !ok {
		defer newStatusLine(s.Err, os.Getenv).follow(done.text, false)()
	}
	in := bufio.NewReaderSize(s.In, 64<<10)
	out := bufio.NewWriterSize(s.Out, 64<<10)
	defer out.Flush()
	failed := false
	for {
		line, err := readLine(in)
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("standard input: %w", err)
		}
		done.bytes.Add(int64(len(line)))
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		v, err := answer(line)
		if err != nil {
			failed = true
			v = map[string]string{"error": err.Error()}
		}
		if err := encode(out, v); err != nil {
			return fmt.Errorf("standard output: %w", err)
		}
		done.lines.Add(1)
		if in.Buffered() == 0 { // whoever writes line by line waits for its answer
			if err := out.Flush(); err != nil {
				return fmt.Errorf("standard output: %w", err)
			}
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	if failed {
		return Exit(2)
	}
	return nil
}

// encode writes v as one line of JSON, with a URL's & as it is.
func encode(w io.Writer, v any) error {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(escape.JSON(line.Bytes()))
	return err
}

func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return nil, fmt.Errorf("a line is longer than %d bytes", maxLine)
		case err == nil:
			return line, nil
		case err == io.EOF && len(line) > 0:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// question reads a line of a batch into q.
func question(line []byte, q any) error {
	if !utf8.Valid(line) { // RFC 8259, 8.1; encoding/json would put another character there
		return errors.New("not UTF-8; a robots.txt of any other bytes can be given as robots_b64, a page as html_b64")
	}
	err := json.Unmarshal(line, q)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return fmt.Errorf("%q can't be a JSON %s", wrong.Field, wrong.Value)
	} else if ok {
		return fmt.Errorf("a JSON %s, not an object", wrong.Value)
	}
	if err != nil {
		return fmt.Errorf("not a JSON object: %w", err)
	}
	return nil
}

// A checkQuestion is one line of check --batch.
type checkQuestion struct {
	Robots    *string `json:"robots"`
	RobotsB64 []byte  `json:"robots_b64"`
	URL       *string `json:"url"`
	Token     *string `json:"product_token"`
	Agent     *string `json:"user_agent"`
	Status    *int    `json:"status"`
}

type checkAnswer struct {
	Allowed    bool          `json:"allowed"`
	Reason     policy.Reason `json:"reason"`
	Line       int           `json:"line,omitempty"`
	Rule       string        `json:"rule,omitempty"`
	Group      string        `json:"group,omitempty"`
	Token      string        `json:"product_token,omitempty"`
	CrawlDelay *float64      `json:"crawl_delay,omitempty"`
	Sitemaps   []string      `json:"sitemaps,omitempty"`
	ReadAs     string        `json:"read_as,omitempty"` // a path that servers may take the URL's for, and that is denied
}

// batch decides line by line, by the settings for robots.txt of a configuration.
func (c *Check) batch(s Streams) error {
	for _, option := range []struct {
		name  string
		given bool
	}{
		{"URLs", len(c.URL) > 0},
		{"--robots", c.Robots != ""},
		{"--crawler", c.Crawler != ""},
		{"--agent", c.Agent != ""},
		{"--token", len(c.Token) > 0},
	} {
		if option.given {
			return fmt.Errorf("--batch and %s exclude each other: with --batch each line of standard input says it all", option.name)
		}
	}
	cfg, err := c.load()
	if err != nil {
		return err
	}
	rules := robots(cfg.Robots)
	strict := rules.Readings != policy.Literal
	rules.Readings = policy.Literal // "allowed" is what RFC 9309 says; read_as has the rest
	return batch(s, func(line []byte) (any, error) { return checkLine(&rules, strict, line) })
}

func checkLine(rules *policy.Robots, strict bool, line []byte) (any, error) {
	var q checkQuestion
	if err := question(line, &q); err != nil {
		return nil, err
	}
	if q.URL == nil {
		return nil, errors.New(`"url" is missing`)
	}
	status := 200
	if q.Status != nil {
		if status = *q.Status; status < 100 || status > 999 {
			return nil, fmt.Errorf(`"status" is %d, not a status`, status)
		}
	}
	body := q.RobotsB64 // it goes first: text beside it is for people to read
	switch {
	case len(body) > 0:
	case q.Robots != nil: // base64 of nothing is a member that was left empty
		body = []byte(*q.Robots)
	case body == nil && q.Status == nil:
		return nil, errors.New(`"robots" or "robots_b64" is missing`)
	}
	var tokens []string
	switch {
	case q.Token != nil && *q.Token != "":
		tokens = []string{*q.Token}
	case q.Agent != nil:
		if token := policy.ProductToken(*q.Agent); token != "" {
			tokens = []string{token}
		}
	}
	t := policy.Target{Path: robotstxt.PathOf(*q.URL)}
	d := rules.Judge(status, body, t, tokens)
	a := checkAnswer{Allowed: d.Allow, Reason: d.Reason, Group: d.Group.Name(), Token: d.Token}
	if d.Reason == policy.ByRule {
		a.Line, a.Rule = d.Rule.Line, d.Rule.String()
	}
	a.CrawlDelay = d.CrawlDelay()
	if d.Robots.File != nil {
		for r := range d.Robots.File.Records("Sitemap") {
			if r.Value != "" {
				a.Sitemaps = append(a.Sitemaps, r.Value)
			}
		}
		if strict {
			a.ReadAs = d.OtherReading(t)
		}
	}
	return a, nil
}
