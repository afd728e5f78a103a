package history

import "math"

// Slope is the change of a value over time.
type Slope struct {
	// PerHour is the least-squares slope, and Within half of its 95 % confidence interval. Within is
	// infinite for fewer than three samples.
	PerHour, Within float64
	First, Last     float64
	Samples         int
}

// Rises reports whether the value grows by more than a number an hour, with 95 % confidence.
func (s Slope) Rises(perHour float64) bool { return s.PerHour-s.Within > perHour }

// Regress calculates the slope of values at times in hours.
func Regress(hours, values []float64) Slope {
	n := float64(len(hours))
	s := Slope{Samples: len(hours), Within: math.Inf(1)}
	if n == 0 {
		return s
	}
	s.First, s.Last = values[0], values[len(values)-1]
	var meanX, meanY float64
	for i := range hours {
		meanX += hours[i] / n
		meanY += values[i] / n
	}
	var xx, xy float64
	for i := range hours {
		xx += (hours[i] - meanX) * (hours[i] - meanX)
		xy += (hours[i] - meanX) * (values[i] - meanY)
	}
	if xx == 0 {
		return s
	}
	s.PerHour = xy / xx
	if n < 3 {
		return s
	}
	var rest float64
	for i := range hours {
		d := values[i] - meanY - s.PerHour*(hours[i]-meanX)
		rest += d * d
	}
	s.Within = student(n-2) * math.Sqrt(rest/(n-2)/xx)
	return s
}

// student is the 97.5 % quantile of Student's t, within 2 % from two degrees of freedom on
// (Abramowitz and Stegun, 26.7.5).
func student(freedom float64) float64 {
	const z = 1.959964
	t := z
	t += (z*z*z + z) / (4 * freedom)
	t += (5*math.Pow(z, 5) + 16*z*z*z + 3*z) / (96 * freedom * freedom)
	t += (3*math.Pow(z, 7) + 19*math.Pow(z, 5) + 17*z*z*z - 15*z) / (384 * freedom * freedom * freedom)
	return t
}
