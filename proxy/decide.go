package proxy

import (
	"context"
	"net/http"
	"time"

	"robotsgate/policy"
	"robotsgate/proxy/internal/body"
)

// A decider is one of the policy engine's ways to decide: about one URL, or about a whole host.
type decider func(context.Context, policy.Request) (policy.Decision, error)

// onRequest decides about a request. It returns the response if the gate itself answers,
// and nil if the request may be sent.
func (p *Proxy) onRequest(x *exchange, r *http.Request) *http.Response {
	if pr := p.decide(r.Context(), x, r, x.settings.Engine.Decide); pr != nil {
		return pr.response(r, x)
	}
	if x.isRobots {
		return p.robotsTxt(r, x)
	}
	x.upgrade = prepare(r)
	if r.ContentLength != 0 {
		x.out.upload = body.NewUpload(r, &x.out.control, p.Limits.IdleTimeout)
		r.Body = x.out.upload
	}
	return nil
}

// decide is the whole sequence of a decision, for requests and for passthrough tunnels
// alike. Each step may end it: the result is what to answer, or nil if the request may be
// sent now, or if x.isRobots is set: the gate itself answers a request for robots.txt.
func (p *Proxy) decide(ctx context.Context, x *exchange, r *http.Request, engine decider) *problem {
	crawler, pr := p.identify(x.settings, r, x.Client, false)
	if pr != nil {
		return pr
	}
	x.Crawler, x.transport = crawler.Name, x.settings.wrapped[crawler]
	if pr := p.admit(r, crawler); pr != nil {
		return pr
	}
	if pr := p.notReady(x); pr != nil {
		return pr
	}
	if x.settings.Engine.NamesMethods() {
		if err := checkMethodClaim(r); err != nil {
			return badRequest(err)
		}
	}
	ask := policy.Request{Target: x.target, Method: r.Method, Crawler: crawler, UserAgent: r.Header.Get("User-Agent")}
	err := p.ask(ctx, x, ask, engine)
	x.Decided = time.Since(x.Start)
	if err != nil {
		return failure(x, err)
	}
	d := x.Decision
	if d.Denied() {
		return refusal(x)
	}
	x.isRobots = d.Reason != policy.ByOverride && x.target.IsRobots() && (r.Method == http.MethodGet || r.Method == http.MethodHead)
	if x.isRobots {
		return nil // the gate answers it, nothing is sent
	}
	return p.awaitTurn(ctx, x, r)
}

// ask checks the destination and asks the policy engine for the decision.
func (p *Proxy) ask(ctx context.Context, x *exchange, ask policy.Request, engine decider) error {
	if err := x.settings.Engine.CheckPath(ask.Target); err != nil {
		return err
	}
	ask.Destination = x.settings.Upstream
	var err error
	if x.decision, err = engine(ctx, ask); err != nil {
		return err
	}
	x.Decision, x.Stated = &x.decision, x.decision.Stated
	if x.decision.Reason == policy.ByUsage {
		x.cite()
	}
	return nil
}

// notReady returns what to answer while the caller of the package lets no request pass.
// No decision is made then, and nothing is sent to any origin.
func (p *Proxy) notReady(x *exchange) *problem {
	if p.Ready == nil {
		return nil
	}
	err := p.Ready()
	if err == nil {
		return nil
	}
	x.Error = err.Error()
	return &problem{
		status: http.StatusServiceUnavailable, kind: "audit", title: "The gate can't write down what it does", fault: "proxy_internal_error",
		cause: "audit log", retry: 10 * time.Second, refused: ByAudit,
		detail: "The gate serves nothing while its audit log can't be written (log.audit_required). Its operator finds out more in its log: " +
			"check the space and permissions of log.audit. It goes on by itself as soon as a record can be written.",
	}
}
