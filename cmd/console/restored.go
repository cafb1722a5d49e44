package main

import (
	"context"
	"errors"
	"net/url"

	"countersign/internal/desk"
	"countersign/internal/engine"
	"countersign/internal/instance"
)

// restored resumes every run that stands still because a backup was restored.
// It ends with the status of the run that is worst off.
func (c runResumeCmd) restored(ctx context.Context, e env) error {
	if err := c.check(); err != nil {
		return err
	}
	if c.CrashAt != "" || c.Expect != "current" {
		return errors.New("--restored goes neither with --crash-at nor with --expect")
	}
	if c.Server != "" {
		h := c.client()
		return c.each(e,
			func(cursor string) (page desk.Page[engine.Run], err error) {
				err = h.call(ctx, "GET", "/runs?"+url.Values{"status": {engine.Blocked}, "limit": {"200"}, "cursor": {cursor}}.Encode(), nil, &page)
				return page, err
			},
			func(run engine.Run) (engine.Run, error) { return remoteResume(ctx, h, string(run.ID), run.Version) })
	}
	i, err := c.folder(ctx, true, nil, quiet(e))
	if err != nil {
		return err
	}
	defer i.Close()
	return c.each(e, blockedRuns(ctx, i), func(run engine.Run) (engine.Run, error) {
		return i.Desk.Drive(ctx, operator(), string(run.ID), run.Version)
	})
}

func blockedRuns(ctx context.Context, i *instance.Instance) func(cursor string) (desk.Page[engine.Run], error) {
	return func(cursor string) (desk.Page[engine.Run], error) {
		return i.Desk.Runs(ctx, operator(), desk.RunQuery{Status: engine.Blocked, Cursor: cursor, Limit: 200})
	}
}

// each lists first, since resuming changes the list, and then resumes.
func (c runResumeCmd) each(e env, list func(cursor string) (desk.Page[engine.Run], error), resume func(engine.Run) (engine.Run, error)) error {
	var all []engine.Run
	for cursor := ""; ; {
		page, err := list(cursor)
		if err != nil {
			return err
		}
		for _, run := range page.Items {
			if run.Error != nil && run.Error.Code == engine.CauseRestored {
				all = append(all, run)
			}
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	var worst error
	for _, run := range all {
		now, err := resume(run)
		if err != nil {
			return err
		}
		if err := showRun(e.out, now, c.JSON); err != nil {
			return err
		}
		if code := ended(now); code != nil && worst != exit(exitBlocked) {
			worst = code
		}
	}
	return worst
}
