package api

import (
	"encoding/json"

	"countersign/internal/desk"

	"github.com/labstack/echo/v4"
)

// listQuestions is GET /questions: those the caller may answer.
func (a *api) listQuestions(c echo.Context) error {
	if err := newQuery(c).err(); err != nil {
		return err
	}
	page, err := a.desk.OpenQuestions(c.Request().Context(), principal(c))
	return orJSON(c, page, err)
}

// listAnswers is GET /runs/{id}/answers: what the run has asked.
func (a *api) listAnswers(c echo.Context) error {
	if err := newQuery(c).err(); err != nil {
		return err
	}
	page, err := a.desk.RunQuestions(c.Request().Context(), principal(c), c.Param("id"))
	return orJSON(c, page, err)
}

// answer is POST /runs/{id}/answers.
func (a *api) answer(c echo.Context) error {
	var in struct {
		Step   string          `json:"step"`
		Pass   int             `json:"pass"`
		Answer json.RawMessage `json:"answer"`
	}
	if _, err := readJSON(c, &in); err != nil {
		return err
	}
	switch {
	case in.Step == "":
		return missing("/step", "the path of the step that asks, as waiting_for names it")
	case len(in.Answer) == 0:
		return missing("/answer", "what the form of the question describes")
	}
	q, err := a.desk.Answer(c.Request().Context(), principal(c), c.Param("id"), desk.Answer{Step: in.Step, Pass: in.Pass, Value: in.Answer})
	return orJSON(c, q, err)
}
