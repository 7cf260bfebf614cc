//! Why commands did not come to their end, in words.

use tacho_record::CutShort;

use super::statements;

statements! {
    /// Why a command did not come to its end.
    cut_short(lang, CutShort);
    CutShort::TimedOut => [] "ended: it took too long", "因超时被终止";
    CutShort::RunOver => [] "ended: the run was over", "因运行结束被终止";
    CutShort::StillRunning => []
        "it had not ended when the run did", "运行结束时尚未结束";
    CutShort::NotWatched { error } => [] "cannot be watched: {error}", "无法监视：{error}";
    CutShort::NotStarted { error } => [] "cannot be started: {error}", "无法启动：{error}";
}
