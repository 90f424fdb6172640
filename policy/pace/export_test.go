package pace

// WithQuota adds the rule that only tests have, for the test with a fleet.
var WithQuota = withQuota
