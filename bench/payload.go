package main

import (
	"encoding/json"
	"fmt"
)

// stepsPerRun is the number of durable steps of one run.
const stepsPerRun = 5

// payload is what every step returns: about 600 bytes of JSON, canonical, so
// that what is measured is the engine and not the step.
func payload(run string, step int) json.RawMessage {
	type item struct {
		Amount int    `json:"amount"`
		ID     int    `json:"id"`
		Name   string `json:"name"`
	}
	items := make([]item, 5)
	for i := range items {
		items[i] = item{100*i + step, 1000*step + i, fmt.Sprintf("line item number %d of order", i)}
	}
	raw, err := json.Marshal(struct {
		Items   []item            `json:"items"`
		Labels  map[string]string `json:"labels"`
		Status  string            `json:"status"`
		Step    int               `json:"step"`
		Summary string            `json:"summary"`
		Run     string            `json:"workflow"`
	}{items, map[string]string{"channel": "scheduled", "region": "eu-central", "tenant": "acme-industries"}, "completed", step,
		"The upstream service accepted the request and returned a receipt that the following step reads before it goes on with its own call.", run})
	if err != nil {
		panic("bench: encode a payload: " + err.Error())
	}
	return raw
}
