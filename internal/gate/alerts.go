package gate

import (
	"errors"
	"fmt"
	"time"

	"robotsgate/internal/admin"
	"robotsgate/internal/config"
)

// alerts returns the problems that an operator should solve. C is the configuration in force.
func (g *Gate) alerts(c *Config) []admin.Alert {
	var all []admin.Alert
	add := func(kind, text, do string, details ...string) {
		all = append(all, admin.Alert{Kind: kind, Text: text, Details: details, Do: do})
	}
	if mistakes := g.mistakes.Load(); mistakes != nil {
		add("reload", "The changed configuration has mistakes, so the one before stays in force:",
			"Correct the file: the gate reads it again by itself. robotsgate validate checks it.", *mistakes...)
	}
	if expired := expiredOverrides(c, time.Now()); len(expired) > 0 {
		add("overrides", "These overrides have expired and are ignored:", "Remove them from the configuration, or set a later expires.", expired...)
	}
	if w := g.authority.Warnings(); len(w) > 0 {
		add("ca", "The CA or its files need attention:", "Do what each line says; robotsgate ca --help has the details.", w...)
	}
	if err := g.audit.Err(); err != nil {
		add("audit", fmt.Sprintf("The audit log can't be written; records lost so far: %d", g.audit.Lost()),
			"Check the disk of log.audit and its permissions, or the reader of its pipe.", err.Error())
	}
	if clients := untrusting(g); len(clients) > 0 {
		add("trust", "These clients have rejected the gate's certificates in the last hour:",
			"Give each client the CA, as its line says. robotsgate doctor, in the shell that starts the client, checks it.", clients...)
	}
	return all
}

func expiredOverrides(c *Config, now time.Time) (all []string) {
	for i, o := range c.Overrides {
		if o.Expired(now) {
			all = append(all, fmt.Sprintf("overrides[%d], %q: expired at %s", i, o.Reason, o.Expires.UTC().Format(time.RFC3339)))
		}
	}
	return all
}

func untrusting(g *Gate) (all []string) {
	for _, u := range g.proxy.UntrustingClients() {
		all = append(all, fmt.Sprintf("%s, %s: %s", u.Address, u.Kind, u.Trust))
	}
	return all
}

// mistakesIn returns the mistakes of a configuration, one a line.
func mistakesIn(err error) (all []string) {
	mistakes, ok := errors.AsType[config.Errors](err)
	if !ok {
		return []string{err.Error()}
	}
	for _, m := range mistakes {
		all = append(all, m.String())
	}
	return all
}
