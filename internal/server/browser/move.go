package browser

import (
	"fmt"
	"strconv"

	"countersign/internal/desk"
	"countersign/internal/engine"
	"countersign/internal/problem"
	"countersign/internal/workflow"
	"countersign/web/templates/pages"

	"github.com/labstack/echo/v4"
)

// moves offers the version in force to a run of an older one, with what would
// follow.
func (b *Browser) moves(c echo.Context, r engine.Run, a *pages.RunActions) error {
	ctx, p := c.Request().Context(), who(c)
	to, err := b.desk.NewerVersion(ctx, p, r)
	if err != nil || to == 0 {
		return err
	}
	a.Move = &pages.Move{URL: address("/runs/", string(r.ID)) + "/migrate", To: to}
	plan, err := b.desk.Migrate(ctx, p, string(r.ID), desk.Migrate{To: to, Expected: r.Version, DryRun: true})
	if f := problem.From(err); f != nil {
		if f.Kind != problem.Conflict {
			return err
		}
		a.Move.WhyNot = f.Message
		for _, x := range f.Fields {
			a.Move.WhyNot += " " + x.Pointer + " " + x.Message + "."
		}
		return nil
	}
	a.Move.Kept, a.Move.Again, a.Move.Dropped = renamed(plan.Kept), renamed(plan.Again), plan.Dropped
	return nil
}

func renamed(steps []workflow.Kept) (words []string) {
	for _, k := range steps {
		if k.Old == k.New {
			words = append(words, k.Old)
			continue
		}
		words = append(words, k.Old+" (now "+k.New+")")
	}
	return words
}

// migrateRun is POST /runs/{id}/migrate.
func (b *Browser) migrateRun(c echo.Context) error {
	to, err := strconv.Atoi(c.FormValue("to"))
	expected, err2 := strconv.ParseInt(c.FormValue("expected_version"), 10, 64)
	if err != nil || err2 != nil || to < 1 {
		return problem.New(problem.Malformed, "malformed", "The form lacks the versions it was made on. Open the run again.")
	}
	_, err = b.desk.Migrate(c.Request().Context(), who(c), c.Param("id"), desk.Migrate{To: to, Expected: expected})
	if p := problem.From(err); p != nil {
		if p.Kind != problem.Conflict {
			return err
		}
		say(c, "warn", "The run stays as it was", p.Message)
	} else {
		say(c, "good", "It goes on", fmt.Sprintf("The run goes on in version %d of its workflow.", to))
	}
	return see(c, address("/runs/", c.Param("id")))
}
