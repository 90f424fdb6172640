package usage

// MayState reports whether any signal may state anything. It looks only at names: most URLs have
// no signal.
func (in *Input) MayState() bool {
	if in.TDMRep != nil && len(in.TDMRep.entries) > 0 {
		return true
	}
	if in.Robots != nil && in.Robots.HasField("License") || in.Group.HasField("License") {
		return true
	}
	if !in.Denied && (in.Group.HasField("Content-Usage") || in.Group.HasField("Content-Signal")) {
		return true
	}
	for _, name := range []string{"Content-Usage", "Content-Signal", "Tdm-Reservation", "Link"} {
		if len(in.Header[name]) > 0 {
			return true
		}
	}
	for i := range in.Tags {
		if reservesTraining(in.Tags[i].Name) {
			return true
		}
	}
	for i := range in.Metas {
		if equalFold(in.Metas[i].Name, tdmReservation) {
			return true
		}
	}
	return len(in.Links) > 0
}
