package desk

import (
	"context"
	"errors"
	"fmt"

	"countersign/internal/approvals"
	"countersign/internal/store"
)

// Check looks for what no single package can see: requests whose run is gone,
// rows that do not agree with their subject, a log that does not verify. It
// changes nothing.
func (d *Desk) Check(ctx context.Context) error {
	var faults []error
	if err := d.db.CheckIntegrity(ctx); err != nil {
		faults = append(faults, err)
	}
	report, err := d.log.VerifyFolder(ctx)
	if err != nil {
		return err
	}
	for _, f := range report.Findings {
		faults = append(faults, fmt.Errorf("audit log %q, entry %d: %s", f.Tenant, f.Seq, f.What))
	}
	cursor := ""
	for {
		var page []approvals.Item
		err := d.db.View(ctx, func(ctx context.Context, q store.Querier) (err error) {
			page, cursor, err = d.book.List(ctx, q, approvals.Filter{Tenant: Tenant, Cursor: cursor, Limit: pageMax})
			for _, i := range page {
				faults = append(faults, d.checkRequest(ctx, q, i))
			}
			return err
		})
		if err != nil {
			return err
		}
		if cursor == "" {
			return errors.Join(faults...)
		}
	}
}

func (d *Desk) checkRequest(ctx context.Context, q store.Querier, i approvals.Item) error {
	if _, err := d.engine.Run(ctx, q, i.Tenant, i.Run); err != nil {
		return fmt.Errorf("approval %s: its run %s: %w", i.ID, i.Run, err)
	}
	c, err := d.book.Check(ctx, q, i.Tenant, i.ID)
	if err != nil {
		return fmt.Errorf("approval %s: %w", i.ID, err)
	}
	if c.Tampered != "" {
		return fmt.Errorf("approval %s: %s", i.ID, c.Tampered)
	}
	return nil
}
