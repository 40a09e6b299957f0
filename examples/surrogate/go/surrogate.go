package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"sort"
)

// Surrogate has the tables that `hybridsim surrogate` wrote for one state of a storage system.
type Surrogate struct {
	probabilities []float64
	Closed, Open  Table
}

// Table has latencies in microseconds by share of reads, size and load: quantiles, then the means
// of the bands between them.
type Table struct {
	Shares      []float64 `json:"read_share"`
	Bytes, Load []float64
	Read, Write [][]float64
}

// OpenSurrogate reads the tables of a state.
func OpenSurrogate(path, state string) (*Surrogate, error) {
	var file struct {
		Format        string
		Version       int
		Probabilities []float64
		States        map[string]*Surrogate
	}
	text, err := os.ReadFile(path)
	if err = errors.Join(err, json.Unmarshal(text, &file)); err != nil {
		return nil, err
	}
	found := file.States[state]
	if file.Format != "hybridsim-surrogate" || file.Version != 1 || found == nil {
		return nil, fmt.Errorf("%s: not version 1 of hybridsim-surrogate with state %s", path, state)
	}
	found.probabilities = file.Probabilities
	return found, nil
}

// Latency is that of op in a closed loop of requests of size bytes, depth of them
// outstanding, in microseconds. A load outside the tables is an error.
func (s *Surrogate) Latency(op string, share, size, depth float64) ([]float64, error) {
	return s.Closed.at(op, [3]float64{share, size, depth}, math.Log)
}

// OpenLatency is that of requests that arrive at random, iops per second.
func (s *Surrogate) OpenLatency(op string, share, size, iops float64) ([]float64, error) {
	most, err := s.IOPS(share, size, s.Closed.Load[len(s.Closed.Load)-1])
	if err != nil {
		return nil, err
	}
	at := [3]float64{share, size, iops / most}
	return s.Open.at(op, at, func(x float64) float64 { return -math.Log1p(-x) })
}

// IOPS is how many requests of a closed loop are served per second, by Little's law.
func (s *Surrogate) IOPS(share, size, depth float64) (float64, error) {
	us := 0.0
	for op, part := range map[string]float64{"read": share, "write": 1 - share} {
		if part > 0 {
			latency, err := s.Latency(op, share, size, depth)
			if err != nil {
				return 0, err
			}
			us += part * s.Mean(latency)
		}
	}
	return depth * 1e6 / us, nil
}

// Mean of a latency.
func (s *Surrogate) Mean(latency []float64) (mean float64) {
	for i, p := range s.probabilities[1:] {
		mean += (p - s.probabilities[i]) * latency[len(s.probabilities)+i]
	}
	return mean
}

// Quantile of a latency; that of a random number between 0 and 1 draws one.
func (s *Surrogate) Quantile(latency []float64, probability float64) float64 {
	probability = min(max(probability, 0), 1)
	i := min(max(sort.SearchFloat64s(s.probabilities, probability), 1), len(s.probabilities)-1)
	from, to := s.probabilities[i-1], s.probabilities[i]
	least, most, mean := latency[i-1], latency[i], latency[len(s.probabilities)+i-1]
	power := max(most-mean, 0) / max(mean-least, 1e-300)
	return least + (most-least)*math.Pow((probability-from)/(to-from), power)
}

func (t *Table) at(op string, load [3]float64, axis func(float64) float64) ([]float64, error) {
	scales := [...]func(float64) float64{func(x float64) float64 { return x }, math.Log, axis}
	latencies := map[string][][]float64{"read": t.Read, "write": t.Write}[op]
	if latencies == nil {
		return nil, fmt.Errorf("%q is neither read nor write", op)
	}
	var between func(a, place int) ([]float64, error)
	between = func(a, place int) ([]float64, error) {
		if a == 3 && latencies[place] == nil {
			return nil, fmt.Errorf("too little to %s at a read share of %g", op, load[0])
		} else if a == 3 {
			return latencies[place], nil
		}
		knots, x, scale := [...][]float64{t.Shares, t.Bytes, t.Load}[a], load[a], scales[a]
		near := min(max(x, knots[0]), knots[len(knots)-1])
		if !(math.Abs(x-near) <= 1e-9*near) { // rounding, of rates
			return nil, fmt.Errorf("%g is not in %g to %g", x, knots[0], knots[len(knots)-1])
		}
		x = near
		k := sort.SearchFloat64s(knots, x)
		above, err := between(a+1, place*len(knots)+k)
		if knots[k] == x || err != nil {
			return above, err
		}
		below, err := between(a+1, place*len(knots)+k-1)
		part := (scale(x) - scale(knots[k-1])) / (scale(knots[k]) - scale(knots[k-1]))
		mixed := make([]float64, len(below))
		for i := range mixed {
			mixed[i] = math.Pow(above[i], part) * math.Pow(below[i], 1-part)
		}
		return mixed, err
	}
	return between(0, 0)
}
