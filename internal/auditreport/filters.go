package auditreport

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"robotsgate/internal/audit"
	"robotsgate/internal/console"
)

// Filters are the options that select records.
type Filters struct {
	ID      string `placeholder:"ID" help:"Only the request with this id, as a refusal names it."`
	Gate    string `placeholder:"ID" help:"Only records of the gate with this id, which its records name."`
	URL     string `placeholder:"URL" help:"Only requests for this URL; * stands for any characters."`
	Host    string `placeholder:"HOST" help:"Only requests to this host, such as *.example.com or example.com:8443."`
	Crawler string `placeholder:"NAME" help:"Only requests of this crawler."`
	Reason  string `placeholder:"R" help:"Only decisions and refusals for this reason, such as rule, unreachable or guard."`
	Since   string `placeholder:"T" help:"Only requests since this time: 2026-02-28T15:04:05Z, 2026-02-28 (UTC), or back from now, such as 24h."`
	Until   string `placeholder:"T" help:"Only requests until this time. A date includes that day."`
	Denied  bool   `help:"Only requests that were denied or refused, or would be without report mode."`
}

// Given reports whether there is any of the options.
func (o Filters) Given() bool { return o != Filters{} }

// Parse returns the filter that the options describe.
func (o Filters) Parse(now time.Time) (*audit.Filter, error) {
	f := &audit.Filter{ID: o.ID, Gate: o.Gate, Crawler: o.Crawler, Reason: o.Reason, Denied: o.Denied}
	var errs []error
	check := func(option string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", option, err))
		}
	}
	var err error
	if o.URL != "" {
		f.URL, err = audit.ParseURLPattern(o.URL)
		check("--url", err)
	}
	if o.Host != "" {
		f.Host, err = audit.ParseHostPattern(o.Host)
		check("--host", err)
	}
	if o.Since != "" {
		f.Since, _, err = parseMoment(o.Since, now)
		check("--since", err)
	}
	if o.Until != "" {
		_, f.Until, err = parseMoment(o.Until, now)
		check("--until", err)
	}
	if len(errs) == 0 && !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until) {
		errs = append(errs, errors.New("--since is after --until, so that there can't be such a request"))
	}
	return f, errors.Join(errs...)
}

// parseMoment parses a time, a date or a duration back from now. It returns when that begins and ends:
// a date is a day long, a time without fractions a second.
func parseMoment(text string, now time.Time) (begin, end time.Time, err error) {
	if back, err := time.ParseDuration(text); err == nil && back >= 0 {
		at := now.Add(-back)
		return at, at, nil
	}
	for _, form := range []struct {
		layout string
		length time.Duration
	}{
		{time.DateOnly, 24 * time.Hour},
		{time.DateTime, time.Second}, // as the summary prints it
		{time.RFC3339, time.Second},
	} {
		at, err := time.Parse(form.layout, text)
		if err != nil {
			continue
		}
		if strings.Contains(text, ".") { // time.Parse takes fractions in every layout with seconds
			return at, at.Add(1), nil
		}
		return at, at.Add(form.length), nil
	}
	return begin, end, fmt.Errorf("expected a time such as 2026-02-28T15:04:05Z, a date such as 2026-02-28, or a duration back from now such as 24h; got %q", text)
}

// Words says in words which records the options select. F is their filter.
func (o Filters) Words(f *audit.Filter) (all []string) {
	add := func(given bool, format string, args ...any) {
		if given {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	add(o.Host != "", "requests to the host %s", o.Host)
	add(o.URL != "", "requests for %s", o.URL)
	add(o.Crawler != "", "requests of the crawler %s", o.Crawler)
	add(o.Gate != "", "requests through the gate %s", o.Gate)
	add(o.Reason != "", "decisions for the reason %s", o.Reason)
	add(o.ID != "", "the request %s", o.ID)
	add(!f.Since.IsZero(), "since %s UTC", console.UTC(f.Since))
	add(!f.Until.IsZero(), "before %s UTC", console.UTC(f.Until))
	add(o.Denied, "only what was refused, or would have been")
	return all
}
