package rolecall

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	_ "image/jpeg" // so that image.DecodeConfig reads JPEG
	_ "image/png"
	"slices"

	_ "golang.org/x/image/webp"
)

// Logo describes the image that the pages before the sign-in show. LogoFile has the image.
type Logo struct {
	MediaType string `json:"mediaType"`
	Width     int    `json:"width"`  // pixels
	Height    int    `json:"height"` // pixels
	Size      int    `json:"size"`   // bytes
	Hash      string `json:"hash"`   // of the content
	UpdatedAt Time   `json:"updatedAt"`
}

// LogoFile is an image that is stored as it was uploaded.
type LogoFile struct {
	MediaType string
	Content   []byte
}

// LogoMediaTypes are the media types that a logo can have. SVG is not one of them, because
// it can contain scripts.
var LogoMediaTypes = []string{"image/png", "image/jpeg", "image/webp"}

// Logo returns the description of the image, or its field errors. hash is a hash of the
// content. Logo reads the beginning and the end of the image, but decodes no pixels.
func (f *LogoFile) Logo(hash string, now Time) (Logo, FieldErrors) {
	var faults FieldErrors
	if len(f.Content) > LogoSizeMax {
		faults.Add("", "length", fmt.Sprintf("must have at most %d bytes", LogoSizeMax))
		return Logo{}, faults
	}
	config, format, err := image.DecodeConfig(bytes.NewReader(f.Content))
	switch {
	case err != nil || !slices.Contains(LogoMediaTypes, "image/"+format) || !isWholeImage(f.Content, format):
		faults.Add("", "format", "must be a complete image in the format PNG, JPEG or WebP")
	case "image/"+format != f.MediaType:
		faults.Add("", "type", "must be an image of the declared media type")
	case min(config.Width, config.Height) < LogoSideMin || max(config.Width, config.Height) > LogoSideMax:
		faults.Add("", "range", fmt.Sprintf("must be an image with a width and a height from %d to %d pixels", LogoSideMin, LogoSideMax))
	}
	return Logo{f.MediaType, config.Width, config.Height, len(f.Content), hash, now}, faults
}

// isWholeImage reports whether the image ends as its format requires. Otherwise a part of
// it is missing.
func isWholeImage(content []byte, format string) bool {
	switch format {
	case "png":
		return bytes.HasSuffix(content, []byte("\x00\x00\x00\x00IEND\xae\x42\x60\x82"))
	case "jpeg":
		return bytes.HasSuffix(content, []byte{0xff, 0xd9})
	}
	return uint64(binary.LittleEndian.Uint32(content[4:8]))+8 == uint64(len(content)) // WebP is a RIFF file, which begins with its length
}

// WithLogo returns the tenant with another logo, or without a logo if it is nil.
func (t Tenant) WithLogo(logo *Logo, now Time) Tenant {
	t.Logo, t.UpdatedAt = logo, max(now, t.UpdatedAt+1)
	t.Version++
	return t
}

// The limits of a logo.
const (
	LogoSizeMax = 32 << 10 // bytes
	LogoSideMin = 16       // pixels
	LogoSideMax = 1024     // pixels
)
