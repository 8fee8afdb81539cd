//! An MP4 file (ISO/IEC 14496-12 and -15) with one H.264 track, all samples of equal length in time.
//! The index comes before the media, so that players start before the download ends.

/// The parameters of a track, besides its samples.
#[derive(Debug)]
pub(crate) struct Track<'a> {
    /// In samples.
    pub(crate) width: u16,
    /// In samples.
    pub(crate) height: u16,
    /// Pictures per second.
    pub(crate) rate: u32,
    /// Sequence parameter set, a NAL unit.
    pub(crate) sequence_parameters: &'a [u8],
    /// Picture parameter set, a NAL unit.
    pub(crate) picture_parameters: &'a [u8],
}

/// Time units per second in the file.
const TIMESCALE: u32 = 1000;
const LENGTH_BYTES: usize = 4;

/// Writes the whole file. `pictures`: one NAL unit each, all of them key pictures.
pub(crate) fn file(track: &Track<'_>, pictures: &[Vec<u8>]) -> Vec<u8> {
    let header = boxed(*b"ftyp", &[b"isom", &[0, 0, 2, 0], b"isomiso2avc1mp41"]);
    // The chunk offset depends on the size of the index that contains it; that size doesn't depend on the offset.
    let index_length = index(track, pictures, 0).len();
    let media_start = header.len() + index_length + 8;
    let media_length: usize = pictures.iter().map(|picture| LENGTH_BYTES + picture.len()).sum();

    let mut file = header;
    file.extend(index(track, pictures, narrow(media_start)));
    file.extend(narrow(media_length + 8).to_be_bytes());
    file.extend(b"mdat");
    for picture in pictures {
        file.extend(narrow(picture.len()).to_be_bytes());
        file.extend(picture);
    }
    file
}

fn index(track: &Track<'_>, pictures: &[Vec<u8>], media_start: u32) -> Vec<u8> {
    let picture_time = TIMESCALE / track.rate;
    let count = narrow(pictures.len());
    let duration = (picture_time * count).to_be_bytes();
    let matrix = words(&[0x1_0000, 0, 0, 0, 0x1_0000, 0, 0, 0, 0x4000_0000]);
    let size = [track.width.to_be_bytes(), track.height.to_be_bytes()].concat();

    let movie = boxed(
        *b"mvhd",
        &[
            &words(&[0, 0, 0, TIMESCALE]),
            &duration,
            &words(&[0x1_0000]),
            &[1, 0],
            &[0; 10],
            &matrix,
            &[0; 24],
            &words(&[2]),
        ],
    );
    let track_header = boxed(
        *b"tkhd",
        &[
            &[0, 0, 0, 3],
            &words(&[0, 0, 1, 0]),
            &duration,
            &[0; 16],
            &matrix,
            &words(&[u32::from(track.width) << 16, u32::from(track.height) << 16]),
        ],
    );
    // 0x55c4 is the language code "und".
    let media_header = boxed(*b"mdhd", &[&words(&[0, 0, 0, TIMESCALE]), &duration, &[0x55, 0xc4, 0, 0]]);
    let handler = boxed(*b"hdlr", &[&words(&[0, 0]), b"vide", &[0; 12], b"video\0"]);
    let reference = boxed(*b"dref", &[&words(&[0, 1]), &boxed(*b"url ", &[&[0, 0, 0, 1]])]);

    let configuration = boxed(
        *b"avcC",
        &[
            &[1],
            &track.sequence_parameters[1..4],
            &[0xff, 0xe1], // four-byte lengths, one sequence parameter set
            &short(track.sequence_parameters.len()),
            track.sequence_parameters,
            &[1],
            &short(track.picture_parameters.len()),
            track.picture_parameters,
        ],
    );
    let entry = boxed(
        *b"avc1",
        &[
            &[0, 0, 0, 0, 0, 0, 0, 1],
            &[0; 16],
            &size,
            &words(&[0x48_0000, 0x48_0000, 0]), // 72 dots per inch in both directions
            &[0, 1],
            &[0; 32],
            &[0, 0x18, 0xff, 0xff],
            &configuration,
        ],
    );
    let lengths: Vec<u32> = pictures.iter().map(|picture| narrow(LENGTH_BYTES + picture.len())).collect();
    let samples = boxed(
        *b"stbl",
        &[
            &boxed(*b"stsd", &[&words(&[0, 1]), &entry]),
            &boxed(*b"stts", &[&words(&[0, 1, count, picture_time])]),
            &boxed(*b"stsc", &[&words(&[0, 1, 1, count, 1])]),
            &boxed(*b"stsz", &[&words(&[0, 0, count]), &words(&lengths)]),
            &boxed(*b"stco", &[&words(&[0, 1, media_start])]),
        ],
    );
    let media_information = boxed(
        *b"minf",
        &[&boxed(*b"vmhd", &[&words(&[1, 0, 0])]), &boxed(*b"dinf", &[&reference]), &samples],
    );
    let media = boxed(*b"mdia", &[&media_header, &handler, &media_information]);
    boxed(*b"moov", &[&movie, &boxed(*b"trak", &[&track_header, &media])])
}

fn boxed(kind: [u8; 4], parts: &[&[u8]]) -> Vec<u8> {
    let length = 8 + parts.iter().map(|part| part.len()).sum::<usize>();
    let mut bytes = Vec::with_capacity(length);
    bytes.extend(narrow(length).to_be_bytes());
    bytes.extend(kind);
    for part in parts {
        bytes.extend(*part);
    }
    bytes
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_be_bytes()).collect()
}

fn short(length: usize) -> [u8; 2] {
    u16::try_from(length).expect("parameter sets are a few bytes").to_be_bytes()
}

fn narrow(length: usize) -> u32 {
    u32::try_from(length).expect("simulated files are far below 4 GB")
}
