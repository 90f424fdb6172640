package proxy

import (
	"net/http"
	"time"

	"robotsgate/proxy/internal/origin"
)

// exhaustedProblem answers a request for which the gate could not open a connection.
func exhaustedProblem(err error) *problem {
	s := origin.ShortageIn(err)
	if s == nil {
		s = &origin.Shortage{What: "resources", Remedy: "find out more in its log"}
	}
	return &problem{
		status: http.StatusServiceUnavailable, kind: "out-of-resources", title: "The gate is out of " + s.What,
		fault: "proxy_internal_error", cause: "out of " + s.What, retry: 2 * time.Second,
		detail: "The gate could not open a connection, because it is out of " + s.What + ". This says nothing about the origin: try again. The gate's operator can " + s.Remedy + ".",
	}
}
