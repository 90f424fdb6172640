package robotstag

// clock reads the time of day, if there is one.
func (r *dateReader) clock() bool {
	if c := r.peek(); (c == 'T' || c == 't') && r.i+1 < len(r.s) && isDigit(r.s[r.i+1]) {
		r.i++
		return r.clockDigits()
	}
	start := r.i
	r.blank()
	if r.accept(',') {
		r.blank()
	}
	if w := r.letters(); equalFold(w, "at") {
		r.i += len(w)
		r.blank()
	}
	if !r.timeAhead() {
		r.i = start
		return true
	}
	return r.clockDigits()
}

// timeAhead reports whether one or two digits and a colon follow.
func (r *dateReader) timeAhead() bool {
	i := r.i
	for i < len(r.s) && isDigit(r.s[i]) {
		i++
	}
	n := i - r.i
	return n > 0 && n <= 2 && i < len(r.s) && r.s[i] == ':'
}

// clockDigits reads 15:00, 15:00:00.5, 3:00 PM or, after a T, 150000.
func (r *dateReader) clockDigits() bool {
	v, digits := r.number()
	switch digits {
	case 1, 2:
		r.hour = v
	case 4:
		r.hour, r.minute = v/100, v%100
	case 6:
		r.hour, r.minute, r.sec = v/10000, v/100%100, v%100
	default:
		return false
	}
	if digits <= 2 && r.accept(':') {
		if r.minute, digits = r.number(); digits != 2 {
			return false
		}
		if r.accept(':') {
			if r.sec, digits = r.number(); digits != 2 {
				return false
			}
		}
	}
	if c := r.peek(); (c == '.' || c == ',') && r.i+1 < len(r.s) && isDigit(r.s[r.i+1]) {
		r.i++
		r.number() // a fraction is cut off: the earlier second is the stricter
	}
	return r.halfDay()
}

// halfDay reads AM or PM, if there.
func (r *dateReader) halfDay() bool {
	start := r.i
	r.blank()
	w := r.letters()
	pm := equalFold(w, "pm")
	if !pm && !equalFold(w, "am") {
		r.i = start
		return true
	}
	r.i += len(w)
	if r.hour < 1 || r.hour > 12 {
		return false
	}
	r.hour %= 12
	if pm {
		r.hour += 12
	}
	return true
}
