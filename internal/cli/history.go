package cli

import (
	"robotsgate/internal/console"
	"robotsgate/internal/history/report"
)

// History shows how an origin's robots.txt, and its tdmrep.json, have changed.
type History struct {
	Configured
	Diff   bool     `help:"Print what has changed from each file to the next, and which decisions and usage preferences differ."`
	Token  []string `placeholder:"T" help:"Compare decisions for a crawler that obeys this product token; the first with a group counts."`
	Agent  string   `placeholder:"UA" help:"Compare decisions for a crawler that sends this User-Agent."`
	URL    []string `placeholder:"URL" sep:"none" help:"Compare decisions about this URL, too."`
	Log    []string `placeholder:"FILE" sep:"none" help:"Compare decisions about the origin's paths in this audit log, too."`
	JSON   bool     `help:"Print JSON."`
	Origin string   `arg:"" name:"ORIGIN" help:"Such as https://example.com; a host alone stands for all its origins."`
}

// Run reads and prints.
func (h *History) Run(s console.Streams) error {
	c, err := h.load()
	if err != nil {
		return err
	}
	return report.Print(s, c, report.Options{
		Diff: h.Diff, Token: h.Token, Agent: h.Agent, URL: h.URL, Log: h.Log, JSON: h.JSON, Origin: h.Origin, Config: h.Config,
	})
}
