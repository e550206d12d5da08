package console

import (
	"strconv"

	"github.com/a-h/templ"

	"github.com/rolecall/rolecall/internal/auditlog"
	"github.com/rolecall/rolecall/internal/web"
)

func (c *console) checkpointPages() []page {
	const operation = "EventsController_getCheckpoint"
	return []page{
		{path: "/{tenant}/events/checkpoint", operation: operation, show: c.showCheckpoint},
		{path: "/{tenant}/events/checkpoint/download", operation: operation, show: c.downloadCheckpoint},
	}
}

// checkpointView is the data of the page of the audit log's checkpoint.
type checkpointView struct {
	frame
	checkpoint auditlog.Checkpoint
}

func (c *console) showCheckpoint(v *pageContext) error {
	checkpoint, err := c.directory.Checkpoint(v.ctx, v.call, c.site.Public)
	if err != nil {
		return err
	}
	return c.show(v, msg("checkpoint.title"), eventsSection, func(f frame) templ.Component {
		return checkpointPage(checkpointView{f, checkpoint})
	})
}

// downloadCheckpoint sends the checkpoint as a file for rolecall events verify.
func (c *console) downloadCheckpoint(v *pageContext) error {
	checkpoint, err := c.directory.Checkpoint(v.ctx, v.call, c.site.Public)
	if err != nil {
		return err
	}
	view := checkpointView{frame{pageContext: v}, checkpoint}
	h := v.response.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="`+view.fileName()+`"`)
	web.Respond(v.response, v.request, v.status, []byte(checkpoint.Note))
	return nil
}

// fileName returns the name of the file with the checkpoint.
func (c checkpointView) fileName() string {
	return c.tenant + "-" + strconv.FormatInt(c.checkpoint.Size, 10) + ".checkpoint"
}
