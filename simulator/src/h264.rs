//! A small H.264 encoder (ITU-T H.264, constrained baseline): every picture is an IDR picture made of macroblocks
//! of one flat color, which the decoder's own deblocking filter then smooths.
//!
//! That is enough for simulated videos, so the gateway needs no C++ codec. A 1080p picture takes about 20 kB. Each
//! macroblock is predicted from its neighbor's color and corrected by DC coefficients alone. The quantizer is chosen so
//! that one level is exactly one sample step (see [`QP`]), so rounding errors do not accumulate.

/// Width and height in samples of a macroblock, the unit of color.
const BLOCK: usize = 16;

/// Luma quantizer. At 28, the inverse transform of a lone DC level `l` is `(64 l + 32) >> 6 = l` in every sample.
const QP: i32 = 28;
/// The 2x2 chroma transform needs six steps less for the same result (8.5.11).
const CHROMA_QP_OFFSET: i32 = -6;
/// `slice_alpha_c0_offset_div2` and `slice_beta_offset_div2`: the strongest deblocking.
const DEBLOCKING: i32 = 6;

/// A color as samples of the coded picture: luma, blue and red difference (BT.601, limited range).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Colour {
    pub(crate) y: u8,
    pub(crate) cb: u8,
    pub(crate) cr: u8,
}

impl Colour {
    /// Converts from RGB, each 0 to 255.
    pub(crate) fn from_rgb([r, g, b]: [u8; 3]) -> Self {
        let (r, g, b) = (i32::from(r), i32::from(g), i32::from(b));
        let sample = |value: i32| u8::try_from(value.clamp(16, 240)).unwrap_or(128);
        Self {
            y: sample(((66 * r + 129 * g + 25 * b + 128) >> 8) + 16),
            cb: sample(((-38 * r - 74 * g + 112 * b + 128) >> 8) + 128),
            cr: sample(((112 * r - 94 * g - 18 * b + 128) >> 8) + 128),
        }
    }
}

/// Encoder for pictures of one size. Width and height must be even.
#[derive(Debug)]
pub(crate) struct Encoder {
    width: usize,
    height: usize,
    pictures: u32,
}

impl Encoder {
    pub(crate) fn new(width: usize, height: usize) -> Self {
        debug_assert!(width.is_multiple_of(2) && height.is_multiple_of(2), "4:2:0 sampling needs even sizes");
        Self { width, height, pictures: 0 }
    }

    /// Macroblocks per row and rows per picture.
    pub(crate) fn blocks(&self) -> (usize, usize) {
        (self.width.div_ceil(BLOCK), self.height.div_ceil(BLOCK))
    }

    /// The sequence parameter set, as a NAL unit.
    pub(crate) fn sequence_parameters(&self) -> Vec<u8> {
        let (columns, rows) = self.blocks();
        let mut bits = Bits::default();
        bits.put(66, 8); // profile_idc: baseline
        bits.put(0b1100_0000, 8); // constraint_set0 and 1: constrained baseline
        bits.put(40, 8); // level 4: up to 8192 macroblocks per picture
        bits.unsigned(0); // seq_parameter_set_id
        bits.unsigned(0); // log2_max_frame_num_minus4
        bits.unsigned(2); // pic_order_cnt_type: output order is decoding order
        bits.unsigned(1); // max_num_ref_frames
        bits.put(0, 1); // gaps_in_frame_num_value_allowed_flag
        bits.unsigned(wide(columns) - 1);
        bits.unsigned(wide(rows) - 1);
        bits.put(1, 1); // frame_mbs_only_flag
        bits.put(1, 1); // direct_8x8_inference_flag
        let (right, bottom) = (columns * BLOCK - self.width, rows * BLOCK - self.height);
        if right + bottom > 0 {
            bits.put(1, 1); // frame_cropping_flag; offsets count pairs of samples
            for offset in [0, right / 2, 0, bottom / 2] {
                bits.unsigned(wide(offset));
            }
        } else {
            bits.put(0, 1);
        }
        bits.put(0, 1); // vui_parameters_present_flag: the container gives the timing
        bits.into_nal(0x67)
    }

    /// The picture parameter set, as a NAL unit.
    pub(crate) fn picture_parameters() -> Vec<u8> {
        let mut bits = Bits::default();
        bits.unsigned(0); // pic_parameter_set_id
        bits.unsigned(0); // seq_parameter_set_id
        bits.put(0, 1); // entropy_coding_mode_flag: CAVLC
        bits.put(0, 1); // bottom_field_pic_order_in_frame_present_flag
        bits.unsigned(0); // num_slice_groups_minus1
        bits.unsigned(0); // num_ref_idx_l0_default_active_minus1
        bits.unsigned(0); // num_ref_idx_l1_default_active_minus1
        bits.put(0, 1); // weighted_pred_flag
        bits.put(0, 2); // weighted_bipred_idc
        bits.signed(QP - 26); // pic_init_qp_minus26
        bits.signed(0); // pic_init_qs_minus26
        bits.signed(CHROMA_QP_OFFSET);
        bits.put(1, 1); // deblocking_filter_control_present_flag
        bits.put(0, 1); // constrained_intra_pred_flag
        bits.put(0, 1); // redundant_pic_cnt_present_flag
        bits.into_nal(0x68)
    }

    /// Encodes one picture as a NAL unit. `colour(column, row)` returns the color of each macroblock.
    pub(crate) fn picture(&mut self, colour: impl Fn(usize, usize) -> Colour) -> Vec<u8> {
        let (columns, rows) = self.blocks();
        let mut bits = Bits::default();
        bits.unsigned(0); // first_mb_in_slice
        bits.unsigned(7); // slice_type: I, as all slices of the picture
        bits.unsigned(0); // pic_parameter_set_id
        bits.put(0, 4); // frame_num
        bits.unsigned(self.pictures % 2); // idr_pic_id: must differ between neighbors
        bits.put(0, 1); // no_output_of_prior_pics_flag
        bits.put(0, 1); // long_term_reference_flag
        bits.signed(0); // slice_qp_delta
        bits.unsigned(0); // disable_deblocking_filter_idc
        bits.signed(DEBLOCKING);
        bits.signed(DEBLOCKING);
        self.pictures += 1;

        let mut above = Colour { y: 128, cb: 128, cr: 128 };
        for row in 0..rows {
            let mut predicted = above;
            for column in 0..columns {
                let actual = colour(column, row);
                let (luma_mode, chroma_mode) = match (column, row) {
                    (0, 0) => (DC, CHROMA_DC),
                    (0, _) => (VERTICAL, CHROMA_VERTICAL),
                    _ => (HORIZONTAL, CHROMA_HORIZONTAL),
                };
                macroblock(&mut bits, luma_mode, chroma_mode, predicted, actual);
                if column == 0 {
                    above = actual;
                }
                predicted = actual;
            }
        }
        bits.into_nal(0x65)
    }
}

// Intra 16x16 prediction modes (table 8-4) and chroma ones (table 8-5), which are numbered differently.
const VERTICAL: u32 = 0;
const HORIZONTAL: u32 = 1;
const DC: u32 = 2;
const CHROMA_DC: u32 = 0;
const CHROMA_HORIZONTAL: u32 = 1;
const CHROMA_VERTICAL: u32 = 2;

fn macroblock(bits: &mut Bits, luma_mode: u32, chroma_mode: u32, predicted: Colour, actual: Colour) {
    let step = |from: u8, to: u8| i32::from(to) - i32::from(from);
    let (blue, red) = (step(predicted.cb, actual.cb), step(predicted.cr, actual.cr));
    let chroma = blue != 0 || red != 0;
    bits.unsigned(1 + luma_mode + 4 * u32::from(chroma)); // mb_type: I_16x16, no AC levels (table 7-11)
    bits.unsigned(chroma_mode);
    bits.signed(0); // mb_qp_delta
    bits.lone_level(step(predicted.y, actual.y), &LUMA_TOKENS);
    if chroma {
        bits.lone_level(blue, &CHROMA_TOKENS);
        bits.lone_level(red, &CHROMA_TOKENS);
    }
}

/// `coeff_token` codes (value, length) for no level, one level of ±1, one other level (table 9-5).
type Tokens = [(u32, u32); 3];
/// Column 0 <= nC < 2: no block has AC levels, so every neighbor counts 0.
const LUMA_TOKENS: Tokens = [(1, 1), (0b01, 2), (0b00_0101, 6)];
/// Column nC = -1, chroma DC.
const CHROMA_TOKENS: Tokens = [(0b01, 2), (1, 1), (0b00_0111, 6)];

/// Writes bits, most significant first.
#[derive(Debug, Default)]
struct Bits {
    bytes: Vec<u8>,
    pending: u64,
    count: u32,
}

impl Bits {
    fn put(&mut self, value: u32, length: u32) {
        self.pending = (self.pending << length) | u64::from(value);
        self.count += length;
        while self.count >= 8 {
            self.count -= 8;
            let [.., byte] = (self.pending >> self.count).to_be_bytes();
            self.bytes.push(byte);
        }
        self.pending &= (1 << self.count) - 1;
    }

    /// Exp-Golomb `ue(v)`.
    fn unsigned(&mut self, value: u32) {
        let length = (value + 1).ilog2();
        self.put(0, length);
        self.put(value + 1, length + 1);
    }

    /// Exp-Golomb `se(v)`.
    fn signed(&mut self, value: i32) {
        let magnitude = value.unsigned_abs();
        self.unsigned(if value > 0 { 2 * magnitude - 1 } else { 2 * magnitude });
    }

    /// A residual block whose only level, if any, is its DC one (9.2).
    fn lone_level(&mut self, level: i32, tokens: &Tokens) {
        let magnitude = level.unsigned_abs();
        let [none, one, other] = *tokens;
        let sign = u32::from(level < 0);
        match magnitude {
            0 => return self.put(none.0, none.1),
            1 => {
                self.put(one.0, one.1);
                self.put(sign, 1); // trailing_ones_sign_flag
            }
            _ => {
                self.put(other.0, other.1);
                // Not a trailing one, so not ±1: the code starts at 2 (9.2.2.1).
                match 2 * (magnitude - 2) + sign {
                    code @ 0..14 => self.put(1, code + 1),
                    code @ 14..30 => {
                        self.put(1, 15);
                        self.put(code - 14, 4);
                    }
                    code => {
                        self.put(1, 16);
                        self.put(code - 30, 12);
                    }
                }
            }
        }
        self.put(1, 1); // total_zeros: the level comes first
    }

    /// Ends the payload and escapes it, so that no start code appears inside (7.4.1).
    fn into_nal(mut self, header: u8) -> Vec<u8> {
        self.put(1, 1);
        if self.count > 0 {
            self.put(0, 8 - self.count);
        }
        let mut nal = Vec::with_capacity(self.bytes.len() + 16);
        nal.push(header);
        let mut zeros = 0;
        for byte in self.bytes {
            if zeros == 2 && byte <= 3 {
                nal.push(3);
                zeros = 0;
            }
            nal.push(byte);
            zeros = if byte == 0 { zeros + 1 } else { 0 };
        }
        nal
    }
}

fn wide(value: usize) -> u32 {
    u32::try_from(value).expect("picture sizes are far below 2^32")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_golomb_codes_match_the_standard() {
        let mut bits = Bits::default();
        for value in [0, 1, 2, 3] {
            bits.unsigned(value); // 1 010 011 00100
        }
        bits.put(0, 4);
        assert_eq!(bits.bytes, [0b1010_0110, 0b0100_0000]);
    }

    #[test]
    fn start_codes_are_escaped() {
        let mut bits = Bits::default();
        for byte in [0, 0, 0, 0, 0, 1] {
            bits.put(byte, 8);
        }
        assert_eq!(bits.into_nal(0x65), [0x65, 0, 0, 3, 0, 0, 3, 0, 1, 0x80]);
    }

    #[test]
    fn flat_picture_takes_about_one_byte_per_macroblock() {
        let grey = Colour { y: 128, cb: 128, cr: 128 };
        let picture = Encoder::new(1280, 720).picture(|_, _| grey);
        assert!(picture.len() < 80 * 45 * 2, "{} bytes", picture.len());
    }
}
