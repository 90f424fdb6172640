package proxy

import (
	"context"
	"net/http"
	"time"

	"robotsgate/internal/record"
	"robotsgate/policy"
	"robotsgate/proxy/internal/client"
	"robotsgate/proxy/internal/header"
)

// A decider is one of the policy engine's ways to decide: about one URL, or about a whole host.
type decider func(*policy.Engine, context.Context, policy.Request) (*policy.Decision, error)

// decide checks the destination and asks the policy engine for the decision.
func decide(ctx context.Context, in *inbound, k *policy.Crawler, engine decider) (*policy.Decision, error) {
	if err := in.settings.Engine.CheckPath(in.target); err != nil {
		return nil, err
	}
	return engine(in.settings.Engine, ctx, policy.Request{
		Target: in.target, Method: in.method, Crawler: k, UserAgent: in.header.Get("User-Agent"), Destination: in.settings.Upstream,
	})
}

// asksForRobots reports whether a request asks for the robots.txt that is enforced, which the gate itself answers.
func asksForRobots(in *inbound, d *policy.Decision) bool {
	return d.Reason != policy.ByOverride && policy.ForRobots(in.target, in.method)
}

// checkMethod returns what to answer to a request that names two methods, where overrides permit requests by
// their methods.
func checkMethod(in *inbound) *answer {
	if in.settings.Engine.NamesMethods() {
		if err := header.CheckMethod(in.method, in.header); err != nil {
			return badRequest(err)
		}
	}
	return nil
}

// admit returns what to answer if the crawler has too many connections open.
func admit(conns *client.ConnLimits, c *connection, k *policy.Crawler) *answer {
	if k.MaxConnections == 0 || conns.AdmitCrawler(c.client, k.Name, k.MaxConnections) {
		return nil
	}
	conns.Reject(client.PerCrawler, k.Name)
	return &answer{
		status: http.StatusServiceUnavailable, title: "Too many connections", retry: time.Second, fault: "http_request_denied", closeAfter: true, refused: record.ByLimit,
		detail: "The crawler " + k.Name + " has as many connections open as crawlers[].max_connections allows.",
	}
}

// whileNotReady returns what to answer while the caller of the package lets no request pass.
// No decision is made then, and nothing is sent to any origin.
func whileNotReady(ready func() error) *answer {
	if ready == nil {
		return nil
	}
	err := ready()
	if err == nil {
		return nil
	}
	return &answer{
		status: http.StatusServiceUnavailable, kind: "audit", title: "The gate can't write down what it does", fault: "proxy_internal_error",
		cause: "audit log", retry: 10 * time.Second, refused: record.ByAudit, err: err.Error(),
		detail: "The gate serves nothing while its audit log can't be written (log.audit_required). Its operator finds out more in its log: " +
			"check the space and permissions of log.audit. It goes on by itself as soon as a record can be written.",
	}
}
