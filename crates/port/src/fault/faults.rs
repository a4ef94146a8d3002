//! Which faults, how often: as given to a port, `drop=0.01&seed=7`.

use std::fmt;
use std::str::FromStr;

/// Later frames that overtake a delayed one, unless told otherwise.
const DELAY_FRAMES: u32 = 3;

/// The share of frames that each fault hits, 0 to 1, and the seed that chooses them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Faults {
    /// Share of frames that vanish.
    pub drop: f64,
    /// Share of frames that come twice.
    pub duplicate: f64,
    /// Share of frames with one flipped bit.
    pub corrupt: f64,
    /// Share of frames that later ones overtake.
    pub delay: f64,
    /// How many later frames overtake a delayed one.
    pub delay_frames: u32,
    /// Seed of the choice.
    pub seed: u64,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            drop: 0.0,
            duplicate: 0.0,
            corrupt: 0.0,
            delay: 0.0,
            delay_frames: DELAY_FRAMES,
            seed: 0,
        }
    }
}

impl Faults {
    /// Whether no frame is ever touched.
    pub fn is_none(&self) -> bool {
        [self.drop, self.duplicate, self.corrupt, self.delay].iter().all(|share| *share == 0.0)
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shares = [
            ("drop", self.drop),
            ("duplicate", self.duplicate),
            ("corrupt", self.corrupt),
            ("delay", self.delay),
        ];
        let mut options: Vec<String> = shares
            .iter()
            .filter(|(_, share)| *share != 0.0)
            .map(|(name, share)| format!("{name}={share}"))
            .collect();
        if self.delay_frames != DELAY_FRAMES {
            options.push(format!("delay_frames={}", self.delay_frames));
        }
        if self.seed != 0 {
            options.push(format!("seed={}", self.seed));
        }
        f.write_str(&options.join("&"))
    }
}

impl FromStr for Faults {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut faults = Self::default();
        for option in text.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option
                .split_once('=')
                .ok_or_else(|| format!("option «{option}» has no value, as in drop=0.01"))?;
            match name {
                "drop" => faults.drop = share(name, value)?,
                "duplicate" => faults.duplicate = share(name, value)?,
                "corrupt" => faults.corrupt = share(name, value)?,
                "delay" => faults.delay = share(name, value)?,
                "delay_frames" => faults.delay_frames = whole(name, value)?,
                "seed" => faults.seed = whole(name, value)?,
                _ => {
                    return Err(format!(
                        "unknown option «{name}»; known are drop, duplicate, corrupt, delay, \
                         delay_frames, seed"
                    ));
                }
            }
        }
        Ok(faults)
    }
}

fn share(name: &str, value: &str) -> Result<f64, String> {
    match value.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(format!("{name}={value}: expected a share between 0 and 1, as in 0.01")),
    }
}

fn whole<T: FromStr>(name: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{name}={value}: expected a whole number"))
}
