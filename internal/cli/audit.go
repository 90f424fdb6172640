package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"robotsgate/internal/audit"
	"robotsgate/internal/auditreport"
	"robotsgate/internal/console"
)

// Audit reads audit logs.
type Audit struct {
	Configured
	Filters `group:"Only some of the records (these options combine):"`
	auditreport.Options
}

// Run reads the files once, for all reports.
func (a *Audit) Run(ctx context.Context, s console.Streams) error {
	if len(a.File) == 0 {
		return errors.New("which audit log? The key log.audit names it; without one, the status page has the latest refusals")
	}
	if err := a.checkOptions(); err != nil {
		return err
	}
	var err error
	if a.Filter, err = a.filter(time.Now()); err != nil {
		return err
	}
	a.Filtered = a.given()
	named := map[string]bool{}
	a.File = slices.DeleteFunc(a.File, func(file string) bool { // each record of a file that is named twice would count twice
		file = filepath.Clean(file)
		again := named[file]
		named[file] = true
		return again
	})
	if err := canOpen(a.File); err != nil {
		return err
	}
	if a.Follow {
		return auditreport.Follow(ctx, s, a.Options)
	}
	if !a.Replay && !a.Suggest && (a.ID != "" || a.JSON && a.Filtered) {
		return auditreport.List(s, a.Options)
	}
	c, err := a.load()
	if err != nil {
		return err
	}
	return auditreport.Print(s, c, a.Options)
}

// checkOptions reports options that don't go together.
func (a *Audit) checkOptions() error {
	switch {
	case a.Top < 0:
		return errors.New("--top: can't be negative")
	case !a.Verify && (a.Strict || len(a.Key)+len(a.Witness)+len(a.Checkpoint) > 0):
		return errors.New("--strict, --key, --witness and --checkpoint need --verify")
	case a.Verify && a.givenForVerify():
		return errors.New("--verify checks whole logs: leave out the options that select records")
	case a.Paths < 0:
		return errors.New("--paths: can't be negative")
	case !a.Suggest && a.Paths > 0:
		return errors.New("--paths needs --suggest-overrides")
	case a.Suggest && (a.Verify || a.Replay || a.Follow || a.JSON):
		return errors.New("--suggest-overrides goes with none of --verify, --replay, --follow and --json: it prints YAML")
	case a.Follow && (a.Verify || a.Replay):
		return errors.New("--follow goes with neither --verify nor --replay")
	case a.Follow && slices.Contains(a.File, "-"):
		return errors.New("--follow needs the name of a log: - is printed as it comes with --json and an option that selects records, such as --since 0s")
	case a.Follow && len(a.File) != 1:
		return errors.New("--follow needs the name of one log, that of log.audit; it goes on when the gate rotates it")
	}
	return nil
}

// canOpen reports the files that can't be opened. It does not open a pipe, since that would wait for
// its writer.
func canOpen(files []string) error {
	var errs []error
	for _, file := range files {
		info, err := os.Stat(file)
		switch {
		case file == "-" || err == nil && !info.Mode().IsRegular() && !info.IsDir():
			continue
		case err == nil && info.IsDir():
			errs = append(errs, fmt.Errorf("%s is a folder: name the logs in it", file))
			continue
		}
		f, err := os.Open(file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			errs = append(errs, fmt.Errorf("%s: no such file: the key log.audit of the gate's configuration names its audit log", file))
		case err != nil:
			errs = append(errs, err)
		default:
			f.Close()
		}
	}
	return errors.Join(errs...)
}

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

// given reports whether there is any of the options.
func (o Filters) given() bool { return o != Filters{} }

// givenForVerify reports whether there is an option that --verify does not take.
func (o Filters) givenForVerify() bool {
	o.Gate = ""
	return o.given()
}

// filter returns the filter that the options describe.
func (o Filters) filter(now time.Time) (*audit.Filter, error) {
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
