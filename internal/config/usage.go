package config

import (
	"fmt"
	"slices"

	"robotsgate/policy"
	"robotsgate/policy/glob"
)

// checkUsage reports settings of usage that contradict each other.
func (c *Config) checkUsage() {
	s, u := &c.source, c.Usage
	s.Require(u.Unread != policy.RefuseUnread || c.Tags.HTML, "usage.unread", "refuse needs tags.html: true: without it no page is read, and all would be refused")
	u.Check(s.In("usage"))
}

// warnUsage warns of settings of usage that do less than they seem to.
func (c *Config) warnUsage(w *source) {
	refuse := c.Usage.Refuses()
	purposes := slices.IndexFunc(c.Crawlers, func(k Crawler) bool { return len(k.Purposes) > 0 })
	w.Require(!refuse || purposes >= 0, "usage.reserved", "refuse refuses nothing, since no crawler has purposes: say what a crawler fetches for, such as purposes: [train-ai] in crawlers")
	w.Require(!refuse || purposes < 0 || c.Tags.HTML, "tags.html", "false: the preferences in pages are not known, so that usage.reserved: refuse goes by robots.txt, tdmrep.json and response headers alone")
	unseen := slices.ContainsFunc(c.HTTPS.Passthrough, func(g glob.Glob) bool { return g.String() == "*" })
	for key, all := range map[string]bool{"https.intercept": !c.HTTPS.Intercept, "https.passthrough": unseen} {
		w.Require(!refuse || purposes < 0 || !all, key, "https responses are not seen: for https, usage.reserved: refuse goes by what robots.txt and tdmrep.json state for / alone")
	}
	if purposes >= 0 && !c.source.Given("usage.reserved") {
		w.Add(fmt.Sprintf("crawlers[%d].purposes", purposes), "nothing is refused by them unless usage.reserved is refuse: write usage: {reserved: refuse}, or annotate if annotations are enough")
	}
}
