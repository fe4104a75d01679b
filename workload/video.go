package workload

import (
	"encoding/binary"
	"image"
	"math/rand/v2"
)

// framesPerSecond is that of the videos, as in the reference.
const framesPerSecond = 30

// noiseVideo is an MP4 file of frames of noise, each a JPEG: Motion JPEG, which the
// decoders of servers read, and which needs no codec to write.
func noiseVideo(r *rand.Rand, size image.Point, frames int) ([]byte, error) {
	pictures := make([][]byte, frames)
	for i := range pictures {
		var err error
		if pictures[i], err = noise(r, size); err != nil {
			return nil, err
		}
	}
	return mp4(size, pictures), nil
}

// box is an atom of the file: its length, its name, what is in it.
func box(name string, parts ...[]byte) []byte {
	n := 8
	for _, p := range parts {
		n += len(p)
	}
	b := append(binary.BigEndian.AppendUint32(make([]byte, 0, n), uint32(n)), name...)
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// numbers writes numbers of 32 bits each.
func numbers(list ...int) []byte {
	b := make([]byte, 0, 4*len(list))
	for _, n := range list {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	return b
}

// Fixed-point numbers and the matrix that turns nothing.
const (
	one16 = 1 << 16
	one30 = 1 << 30
)

var identity = numbers(one16, 0, 0, 0, one16, 0, 0, 0, one30)

// mp4 makes a file with one track of pictures. They stand in one piece at its
// end.
func mp4(size image.Point, pictures [][]byte) []byte {
	n := len(pictures)
	sizes := numbers(0, 0, n)
	for _, p := range pictures {
		sizes = append(sizes, numbers(len(p))...)
	}
	table := box("stbl",
		box("stsd", numbers(0, 1), sampleEntry(size)),
		box("stts", numbers(0, 1, n, 1)),    // n frames, each of one unit of time
		box("stsc", numbers(0, 1, 1, n, 1)), // from the first piece on, n frames in each
		box("stsz", sizes),
		box("stco", numbers(0, 1, 0)), // where the piece begins, set below
	)
	media := box("mdia",
		box("mdhd", numbers(0, 0, 0, framesPerSecond, n, 0x55c4<<16)), // in no language
		box("hdlr", numbers(0, 0), []byte("vide"), make([]byte, 13)),
		box("minf", box("vmhd", numbers(1, 0, 0)), box("dinf", box("dref", numbers(0, 1), box("url ", numbers(1)))), table),
	)
	head := box("tkhd", numbers(3, 0, 0, 1, 0, n, 0, 0, 0, 0), identity, numbers(size.X<<16, size.Y<<16))
	movie := box("moov",
		box("mvhd", numbers(0, 0, 0, framesPerSecond, n, one16, 0x0100<<16, 0, 0), identity, make([]byte, 24), numbers(2)),
		box("trak", head, media),
	)
	file := box("ftyp", []byte("isom"), numbers(0x200), []byte("isomiso2mp41"))
	// The last number of the head is the offset of the pictures: they begin right
	// behind the head and the 8 bytes that name their box.
	binary.BigEndian.PutUint32(movie[len(movie)-4:], uint32(len(file)+len(movie)+8))
	return append(append(file, movie...), box("mdat", pictures...)...)
}

// sampleEntry says that a frame is a JPEG of this size.
func sampleEntry(size image.Point) []byte {
	const (
		isJPEG  = 0x6c // among the object types of MPEG-4
		isVideo = 0x11
	)
	decoder := []byte{4, 13, isJPEG, isVideo, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	stream := append([]byte{3, byte(3 + len(decoder) + 3), 0, 1, 0}, append(decoder, 6, 1, 2)...)
	b := append(make([]byte, 6), 0, 1) // in this file
	b = append(b, make([]byte, 16)...)
	b = binary.BigEndian.AppendUint16(b, uint16(size.X))
	b = binary.BigEndian.AppendUint16(b, uint16(size.Y))
	b = append(b, numbers(72<<16, 72<<16, 0)...) // dots per inch
	b = append(b, 0, 1)                          // one frame to a sample
	b = append(b, make([]byte, 32)...)           // the name of what made it
	b = append(b, 0, 24, 0xff, 0xff)             // bits of colour
	return box("mp4v", b, box("esds", numbers(0), stream))
}
